//! An HTML page with the plot and the summary.

use super::{Identity, plot, summary};
use crate::svg::escape;
use crate::{Plan, Report};

/// A self-contained HTML document.
pub fn html(identity: &Identity<'_>, plan: &Plan, report: &Report) -> String {
    let commit = identity.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>zenobe bench: {workload}</title>\n\
         <style>body{{max-width:960px;margin:2rem auto;padding:0 1rem;font-family:system-ui,sans-serif}}\
         pre{{overflow-x:auto}}svg{{width:100%;height:auto}}footer{{opacity:.7}}</style>\n\
         <pre>{summary}</pre>\n{svg}<footer>zenobe {version}{commit}</footer>\n</html>\n",
        workload = plan.workload,
        summary = escape(&summary(plan, report)),
        svg = plot(plan, report),
        version = escape(identity.version),
        commit = escape(&commit),
    )
}

//! SVG documents: their frame, their stylesheet, their escapes. All charts, here and in the
//! benchmarks, use these.

/// A complete document. The title and the body are already markup.
pub fn document(title: &str, width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
    )
}

/// A text escaped for markup.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Colours for light and dark backgrounds, all with enough contrast to either.
const STYLE: &str = "
.back{fill:#fff}.title{fill:#111;font-size:16px;font-weight:600}.panel{fill:#111;font-weight:600}
.label{fill:#555}.other{fill:#8b949e}.grid{stroke:#ddd}.frame{fill:none;stroke:#999}.line{fill:none;stroke-width:2;stroke-linejoin:round}
.area{opacity:.15;stroke:none}.s0{stroke:#2563eb}.s1{stroke:#ea580c}.s2{stroke:#16a34a}.s3{stroke:#9333ea}.s4{stroke:#0e7490}.s5{stroke:#be123c}
.f0{fill:#2563eb}.f1{fill:#ea580c}.f2{fill:#16a34a}.f3{fill:#9333ea}.f4{fill:#0e7490}.f5{fill:#be123c}
@media (prefers-color-scheme:dark){.back{fill:#15181d}.title,.panel{fill:#eee}.label{fill:#aaa}.other{fill:#6e7681}.grid{stroke:#333}.frame{stroke:#666}
.s0{stroke:#60a5fa}.s1{stroke:#fb923c}.s2{stroke:#4ade80}.s3{stroke:#c084fc}.s4{stroke:#22d3ee}.s5{stroke:#fb7185}
.f0{fill:#60a5fa}.f1{fill:#fb923c}.f2{fill:#4ade80}.f3{fill:#c084fc}.f4{fill:#22d3ee}.f5{fill:#fb7185}}
";

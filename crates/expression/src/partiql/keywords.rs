//! The keywords of SQL-92 and PartiQL. They must be quoted to be names.

/// Whether a word is a keyword, ignoring case.
pub fn is_keyword(word: &str) -> bool {
    const LENGTH_MAX: usize = longest();
    let mut lower = [0; LENGTH_MAX];
    let Some(lower) = lower.get_mut(..word.len()) else {
        return false;
    };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    KEYWORDS.binary_search_by(|keyword| keyword.as_bytes().cmp(lower)).is_ok()
}

/// Keywords that are functions if a parenthesis follows.
pub(super) fn is_function(word: &str) -> bool {
    const FUNCTIONS: [&str; 18] = [
        "avg",
        "bag",
        "bit_length",
        "char_length",
        "character_length",
        "coalesce",
        "count",
        "exists",
        "list",
        "lower",
        "max",
        "min",
        "nullif",
        "octet_length",
        "sexp",
        "size",
        "sum",
        "upper",
    ];
    FUNCTIONS.iter().any(|function| function.eq_ignore_ascii_case(word))
}

const fn longest() -> usize {
    let (mut longest, mut at) = (0, 0);
    while at < KEYWORDS.len() {
        if KEYWORDS[at].len() > longest {
            longest = KEYWORDS[at].len();
        }
        at += 1;
    }
    longest
}

/// Sorted.
#[rustfmt::skip]
const KEYWORDS: [&str; 243] = [
    "absolute", "action", "add", "all", "allocate", "alter", "and", "any", "are", "as", "asc",
    "assertion", "at", "authorization", "avg", "bag", "begin", "between", "bit", "bit_length",
    "blob", "bool", "boolean", "both", "by", "cascade", "cascaded", "case", "cast", "catalog",
    "char", "char_length", "character", "character_length", "check", "clob", "close", "coalesce",
    "collate", "collation", "column", "commit", "connect", "connection", "constraint",
    "constraints", "continue", "convert", "corresponding", "count", "create", "cross", "current",
    "current_date", "current_time", "current_timestamp", "current_user", "cursor", "date", "day",
    "deallocate", "dec", "decimal", "declare", "default", "deferrable", "deferred", "delete",
    "desc", "describe", "descriptor", "diagnostics", "disconnect", "distinct", "domain", "double",
    "drop", "else", "end", "escape", "except", "exception", "exec", "execute", "exists",
    "external", "extract", "false", "fetch", "first", "float", "for", "foreign", "found", "from",
    "full", "get", "global", "go", "goto", "grant", "group", "having", "hour", "identity",
    "immediate", "in", "index", "indicator", "initially", "inner", "input", "insensitive",
    "insert", "int", "integer", "intersect", "interval", "into", "is", "isolation", "join", "key",
    "language", "last", "leading", "left", "level", "like", "limit", "list", "local", "lower",
    "match", "max", "min", "minute", "missing", "module", "month", "names", "national", "natural",
    "nchar", "next", "no", "not", "null", "nullif", "numeric", "octet_length", "of", "on", "only",
    "open", "option", "or", "order", "outer", "output", "overlaps", "pad", "partial", "pivot",
    "position", "precision", "prepare", "preserve", "primary", "prior", "privileges", "procedure",
    "public", "read", "real", "references", "relative", "remove", "restrict", "revoke", "right",
    "rollback", "rows", "schema", "scroll", "second", "section", "select", "session",
    "session_user", "set", "sexp", "size", "smallint", "some", "space", "sql", "sqlcode",
    "sqlerror", "sqlstate", "string", "struct", "substring", "sum", "symbol", "system_user",
    "table", "temporary", "then", "time", "timestamp", "timezone_hour", "timezone_minute", "to",
    "trailing", "transaction", "translate", "translation", "trim", "true", "tuple", "union",
    "unique", "unknown", "unpivot", "update", "upper", "usage", "user", "using", "value", "values",
    "varchar", "varying", "view", "when", "whenever", "where", "with", "work", "write", "year",
    "zone",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_found_in_any_case() {
        assert!(KEYWORDS.is_sorted());
        for word in ["select", "Inner", "MISSING", "current_timestamp", "zone", "absolute"] {
            assert!(is_keyword(word), "{word}");
        }
        for word in ["", "pk", "selects", "innerx", "returning", "a_very_long_name_of_an_attribute"]
        {
            assert!(!is_keyword(word), "{word}");
        }
        assert!(is_function("COUNT") && is_function("size") && !is_function("select"));
    }
}

//! The query of a URL, decoded.

use std::borrow::Cow;

/// The parameters of a request. Of one that is given twice the first counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the question mark.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(decoded).collect())
    }

    /// The value of a parameter, if it is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| &**value).filter(|value| !value.is_empty())
    }

    /// A number; nothing if there is none.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("`{name}` is `{text}`; expected a number"))
    }
}

fn decoded((name, value): (&str, &str)) -> (String, String) {
    let text = |text: &str| {
        let spaced: Cow<'_, str> =
            if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
        crate::files::path_of(&spaced).to_string_lossy().into_owned()
    };
    (text(name), text(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_numbers_are_checked() {
        let query = Query::parse("q=a%20b+c%2B&limit=7&empty=&n=x&&flag");
        assert_eq!(query.get("q"), Some("a b c+"));
        assert_eq!(query.get("empty"), None);
        assert_eq!(query.number::<usize>("limit"), Ok(Some(7)));
        assert_eq!(query.number::<usize>("none"), Ok(None));
        assert_eq!(query.number::<usize>("n"), Err("`n` is `x`; expected a number".to_owned()));
    }
}

//! Query parameters, parsed as kube-apiserver does.

use crate::status::Status;

/// The parameters of one request. Only the first value of a repeated parameter counts; unknown ones are ignored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns the value of a parameter, if it is set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter, or an empty string.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns a boolean parameter: `0` and `false` are off, and every other value is on, even an empty one.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns a parameter that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Status::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_match_kube_apiserver() {
        let query = Query::parse("a&b=0&c=False&d=yes&e=");
        let switches = ["a", "b", "c", "d", "e", "f"].map(|name| query.switch(name));
        assert_eq!(switches, [Some(true), Some(false), Some(false), Some(true), Some(true), None]);
    }

    #[test]
    fn values_are_decoded_and_the_first_one_counts() {
        let query = Query::parse("fieldSelector=metadata.name%3Dx&limit=5&limit=6");
        assert_eq!(query.get("fieldSelector"), Some("metadata.name=x"));
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert_eq!(Query::parse("limit=x").number("limit").map_err(|status| status.code), Err(400));
    }
}

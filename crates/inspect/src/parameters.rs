//! Query parameters.

use std::time::Duration;

use axum::http::Uri;

use crate::answer::Refusal;

/// The parameters of a request. The handler takes each one by name; parameters that are left are errors.
pub(crate) struct Parameters {
    left: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Parameters {
    /// Reads the parameters. The token is left out, because it was checked before.
    pub(crate) fn of(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let pairs = pairs.filter(|(name, _)| name != "token");
        Self { left: pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(), known: Vec::new() }
    }

    /// Takes a parameter, if it is given. If it is given twice, the last value counts.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let found = self.left.iter().rposition(|(given, _)| given == name)?;
        let (_, value) = self.left.swap_remove(found);
        self.left.retain(|(given, _)| given != name);
        Some(value)
    }

    pub(crate) fn require(&mut self, name: &'static str, example: &str) -> Result<String, Refusal> {
        self.take(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            Refusal::bad(format!("the parameter `{name}` is missing"), format!("add it, as in `?{name}={example}`"))
        })
    }

    /// Takes the size of a page.
    pub(crate) fn limit(&mut self) -> Result<usize, Refusal> {
        const MOST: usize = 1000;
        let Some(limit) = self.take("limit") else { return Ok(100) };
        match limit.parse() {
            Ok(limit @ 1..=MOST) => Ok(limit),
            _ => Err(Refusal::bad("`limit` is not a number from 1 to 1000", "use `limit=100` and read several pages")),
        }
    }

    /// Takes a parameter that is true unless it is `false`.
    pub(crate) fn unless_false(&mut self, name: &'static str) -> Result<bool, Refusal> {
        match self.take(name).as_deref() {
            None | Some("true" | "") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => {
                Err(Refusal::bad(format!("`{name}` is neither true nor false"), format!("write `{name}=false`")))
            }
        }
    }

    /// Refuses unknown parameters.
    pub(crate) fn end(self) -> Result<(), Refusal> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let hint = match self.known.as_slice() {
            [] => "leave it out: this path has no parameters".to_owned(),
            known => format!("the parameters are: {}", known.join(", ")),
        };
        // The name may have any length.
        let name: String = name.chars().take(40).collect();
        Err(Refusal::bad(format!("there is no parameter {name:?}"), hint))
    }
}

/// Parses a duration such as `30s`, `500ms`, `2m`, `1h`, or `30` for seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

/// Returns one page of sorted strings: those with the prefix, after the last one of the previous page.
pub(crate) fn page<T: AsRef<str>>(
    all: &[T],
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> (Vec<String>, u64, Option<String>) {
    let matching = || all.iter().map(AsRef::as_ref).filter(|text| text.starts_with(prefix));
    let total = matching().count();
    let mut rest = matching().filter(|text| after.is_none_or(|after| *text > after));
    let page: Vec<String> = rest.by_ref().take(limit).map(str::to_owned).collect();
    let next = rest.next().and_then(|_| page.last().cloned());
    (page, u64::try_from(total).unwrap_or(u64::MAX), next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_with_known_units_are_durations() {
        assert_eq!(duration("30s"), Some(Duration::from_secs(30)));
        assert_eq!(duration("30"), Some(Duration::from_secs(30)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        for wrong in ["", "s", "-1s", "1d", "1.5s", "99999999999999999999s", "18446744073709551615h", "5 s", "٣s"] {
            assert_eq!(duration(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn pages_follow_one_another_and_end() {
        let all = ["a/1", "a/2", "a/3", "b/1"];
        assert_eq!(page(&all, "a/", None, 2), (vec!["a/1".into(), "a/2".into()], 3, Some("a/2".into())));
        assert_eq!(page(&all, "a/", Some("a/2"), 2), (vec!["a/3".into()], 3, None));
        assert_eq!(page(&all, "", None, 4).2, None, "a full page can be the last");
        assert_eq!(page(&all, "c", None, 4), (vec![], 0, None));
    }
}

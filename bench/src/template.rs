//! JSON with holes: a file has the shape of an object, and its values are filled in.

/// A text in pieces, each with the name of the hole after it.
pub(crate) struct Template {
    pieces: Vec<(String, String)>,
    end: String,
}

impl Template {
    /// Parses JSON with holes such as `<name>` in its strings. Whitespace outside of strings is removed, as by
    /// kube-apiserver.
    pub(crate) fn new(json: &str) -> Self {
        let (mut pieces, mut rest) = (Vec::new(), without_blanks(json));
        while let Some((before, after)) = rest.split_once('<') {
            let (name, after) = after.split_once('>').expect("a hole that is opened is closed");
            pieces.push((before.to_owned(), name.to_owned()));
            rest = after.to_owned();
        }
        Self { pieces, end: rest }
    }

    /// Returns the text with all holes filled, in their order.
    pub(crate) fn fill(&self, mut value: impl FnMut(&str) -> String) -> Vec<u8> {
        let mut filled = Vec::with_capacity(16 * 1024);
        for (before, name) in &self.pieces {
            filled.extend_from_slice(before.as_bytes());
            filled.extend_from_slice(value(name).as_bytes());
        }
        filled.extend_from_slice(self.end.as_bytes());
        filled.shrink_to_fit();
        filled
    }
}

fn without_blanks(json: &str) -> String {
    let (mut within, mut escaped) = (false, false);
    let mut keep = |letter: &char| {
        let kept = within || !letter.is_whitespace();
        within ^= *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        kept
    };
    json.chars().filter(|letter| keep(letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_in_order_and_whitespace_is_removed() {
        let template = Template::new("{ \"a\": \"x <one>\",\n \"k:{\\\"b c\\\"}\": [\"<two>\", \"<one>\"] }");
        let mut order = Vec::new();
        let filled = template.fill(|name| {
            order.push(name.to_owned());
            name.to_uppercase()
        });
        assert_eq!(String::from_utf8(filled).unwrap(), r#"{"a":"x ONE","k:{\"b c\"}":["TWO","ONE"]}"#);
        assert_eq!(order, ["one", "two", "one"]);
    }
}

//! JSON with holes: how an object looks stands in a file, what is its own is filled in.

/// A text in pieces, each followed by the name of what is filled in after it.
pub(crate) struct Template {
    pieces: Vec<(String, String)>,
    end: String,
}

impl Template {
    /// Reads JSON with holes such as `<name>` in its strings. Blanks outside of strings are left out, as a server does.
    pub(crate) fn new(json: &str) -> Self {
        let (mut pieces, mut rest) = (Vec::new(), without_blanks(json));
        while let Some((before, after)) = rest.split_once('<') {
            let (name, after) = after.split_once('>').expect("a hole that is opened is closed");
            pieces.push((before.to_owned(), name.to_owned()));
            rest = after.to_owned();
        }
        Self { pieces, end: rest }
    }

    /// The text with all holes filled, in the order in which they stand there.
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
    fn holes_are_filled_in_order_and_blanks_are_left_out() {
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

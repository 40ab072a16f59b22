//! Escapes and character classes of patterns.

use super::pattern;
use super::translate::Translator;

/// The names of the Unicode general categories.
const GENERAL: [&str; 34] = [
    "C", "Cc", "Cf", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zs", "Zl",
];

impl Translator<'_> {
    pub(super) fn escape(&mut self) -> Result<(), String> {
        match self.rest.peek() {
            Some('b') => self.escape_piece("(?-u:\\b)"),
            Some('B') => self.escape_piece("\\B"),
            Some('A') => self.escape_piece("\\A"),
            Some('z') => self.escape_piece("\\z"),
            Some('Q') => {
                self.rest.next();
                self.literal()?;
            }
            _ => {
                if let Some(set) = self.set_escape()? {
                    self.piece(&set.text, set.parts);
                } else {
                    let char = self.char_escape()?;
                    self.piece(&exactly(char), 1);
                }
            }
        }
        Ok(())
    }

    /// Reads the letter of an escape that matches a position.
    fn escape_piece(&mut self, text: &str) {
        self.rest.next();
        self.piece(text, 10);
    }

    /// Reads an escape that stands for a set of characters, such as `\d`, after its backslash.
    fn set_escape(&mut self) -> Result<Option<Set>, String> {
        let text = match self.rest.peek() {
            Some('d') => "[0-9]",
            Some('w') => "[0-9A-Za-z_]",
            Some('s') => "[\\t\\n\\f\\r ]",
            Some('D') => "[^0-9]",
            Some('W') => "[^0-9A-Za-z_]",
            Some('S') => "[^\\t\\n\\f\\r ]",
            Some(letter @ ('p' | 'P')) => {
                let letter = *letter;
                self.rest.next();
                return self.named_property(letter).map(Some);
            }
            _ => return Ok(None),
        };
        self.rest.next();
        Ok(Some(Set { text: text.to_owned(), parts: 10 }))
    }

    /// Reads an escape that stands for one character, after its backslash.
    fn char_escape(&mut self) -> Result<char, String> {
        let Some(char) = self.rest.next() else {
            return Err(self.wrong("trailing backslash at end of expression", ""));
        };
        match char {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            'x' => self.hexadecimal(),
            '0'..='7' => self.octal(char),
            _ if char.is_ascii() && !char.is_ascii_alphanumeric() => Ok(char),
            _ => Err(self.wrong("invalid escape sequence", &format!("\\{char}"))),
        }
    }

    /// Reads the text in braces, or else `count` characters.
    fn braced(&mut self, count: usize) -> (String, bool) {
        let in_braces = self.rest.peek() == Some(&'{');
        let mut text = String::new();
        while let Some(char) = self.rest.next_if(|char| in_braces && *char != '}' || text.chars().count() < count) {
            text.push(char);
            if char == '}' {
                break;
            }
        }
        if in_braces && !text.ends_with('}') && self.rest.next_if_eq(&'}').is_some() {
            text.push('}');
        }
        (text, in_braces)
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let (text, in_braces) = self.braced(2);
        let digits = text.trim_start_matches('{').trim_end_matches('}');
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| in_braces || digits.len() == 2);
        let Some(char) = code.and_then(char::from_u32) else {
            let part = format!("\\x{}", text.trim_end_matches('}'));
            return Err(self.wrong("invalid escape sequence", &part));
        };
        Ok(char)
    }

    fn named_property(&mut self, letter: char) -> Result<Set, String> {
        let (name, _) = self.braced(1);
        let text = format!("\\{letter}{name}");
        // These classes are valid, and compiling a large class is slow.
        if !GENERAL.contains(&name.trim_matches(['{', '}', '^'])) && pattern::build(&text).is_err() {
            return Err(self.wrong("invalid character class range", &text));
        }
        Ok(Set { text, parts: 600 })
    }

    fn octal(&mut self, first: char) -> Result<char, String> {
        let mut code = first as u32 - '0' as u32;
        let mut digits = 1;
        while digits < 3
            && let Some(digit) = self.rest.next_if(|char| ('0'..='7').contains(char))
        {
            code = code * 8 + (digit as u32 - '0' as u32);
            digits += 1;
        }
        if first != '0' && digits < 2 {
            return Err(self.wrong("invalid escape sequence", &format!("\\{first}")));
        }
        // Three octal digits are less than the first surrogate.
        Ok(char::from_u32(code).unwrap_or_default())
    }

    /// Reads the literal text between `\Q` and `\E`.
    fn literal(&mut self) -> Result<(), String> {
        while let Some(char) = self.rest.next() {
            if char == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            self.piece(&exactly(char), 1);
        }
        Ok(())
    }

    /// Reads a class such as `[:alpha:]` after its first bracket. Returns false if there is none: the bracket is literal.
    fn named_class(&mut self) -> Result<bool, String> {
        let name: String =
            self.rest.clone().skip(2).take_while(|char| char.is_ascii_lowercase() || *char == '^').collect();
        let closes = self.rest.clone().skip(2 + name.len()).take(2).eq([':', ']']);
        if self.rest.clone().nth(1) != Some(':') || !closes {
            return Ok(false);
        }
        let known = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        let text = format!("[:{name}:]");
        if !known.contains(&name.trim_start_matches('^')) {
            return Err(self.wrong("invalid character class range", &text));
        }
        for _ in 0..name.len() + 4 {
            self.rest.next();
        }
        self.out.push_str(&text);
        Ok(true)
    }

    /// Reads a character class after its bracket.
    pub(super) fn class(&mut self) -> Result<(), String> {
        let rest: String = "[".chars().chain(self.rest.clone()).collect();
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            match self.rest.peek().copied() {
                None => return Err(self.wrong("missing closing ]", &rest)),
                Some(']') if !first => break,
                Some('[') if self.named_class()? => {}
                Some(_) => self.class_item(&rest)?,
            }
            first = false;
        }
        self.rest.next();
        self.piece("]", 10);
        Ok(())
    }

    /// Reads a character, a range or an escape of a class. A minus is literal unless it stands between two characters.
    fn class_item(&mut self, class: &str) -> Result<(), String> {
        let from = self.rest.clone();
        if self.rest.next_if_eq(&'\\').is_some() {
            if let Some(set) = self.set_escape()? {
                self.piece(&set.text, set.parts);
                return Ok(());
            }
            self.rest = from.clone();
        }
        let low = self.class_char(class)?;
        let mut ahead = self.rest.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|char| char != ']');
        if !is_range {
            self.out.push_str(&exactly(low));
            return Ok(());
        }
        self.rest.next();
        let high = self.class_char(class)?;
        if high < low {
            let read = from.clone().count() - self.rest.clone().count();
            return Err(self.wrong("invalid character class range", &from.take(read).collect::<String>()));
        }
        self.out.push_str(&format!("{}-{}", exactly(low), exactly(high)));
        Ok(())
    }

    fn class_char(&mut self, class: &str) -> Result<char, String> {
        match self.rest.next() {
            None => Err(self.wrong("missing closing ]", class)),
            Some('\\') => self.char_escape(),
            Some(char) => Ok(char),
        }
    }
}

/// An escape that stands for a set of characters.
struct Set {
    text: String,
    parts: usize,
}

/// Returns the pattern of one character, valid inside and outside of classes.
fn exactly(char: char) -> String {
    format!("\\x{{{:x}}}", char as u32)
}

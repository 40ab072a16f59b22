//! Escapes and character classes of patterns.

use super::pattern;
use super::translate::Translator;

/// The names of the Unicode general categories.
const GENERAL: [&str; 34] = [
    "C", "Cc", "Cf", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zs", "Zl",
];

impl Translator<'_> {
    pub(super) fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(char) = self.rest.next() else {
            return Err(self.wrong("trailing backslash at end of expression", ""));
        };
        let (inside, outside) = match char {
            'd' => ("0-9", "[0-9]"),
            'w' => ("0-9A-Za-z_", "[0-9A-Za-z_]"),
            's' => ("\\t\\n\\f\\r ", "[\\t\\n\\f\\r ]"),
            'D' => ("[^0-9]", "[^0-9]"),
            'W' => ("[^0-9A-Za-z_]", "[^0-9A-Za-z_]"),
            'S' => ("[^\\t\\n\\f\\r ]", "[^\\t\\n\\f\\r ]"),
            'b' if !in_class => ("", "(?-u:\\b)"),
            'B' if !in_class => ("", "\\B"),
            'A' if !in_class => ("", "\\A"),
            'z' if !in_class => ("", "\\z"),
            'Q' if !in_class => return self.literal(),
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => {
                self.piece(&format!("\\{char}"), 1);
                return Ok(());
            }
            'x' => return self.hexadecimal(),
            'p' | 'P' => return self.named_property(char),
            '0'..='7' => return self.octal(char),
            _ if char.is_ascii_punctuation() => {
                self.piece(&format!("\\x{{{:x}}}", char as u32), 1);
                return Ok(());
            }
            _ => return Err(self.wrong("invalid escape sequence", &format!("\\{char}"))),
        };
        self.piece(if in_class { inside } else { outside }, 10);
        Ok(())
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

    fn hexadecimal(&mut self) -> Result<(), String> {
        let (text, in_braces) = self.braced(2);
        let digits = text.trim_start_matches('{').trim_end_matches('}');
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| in_braces || digits.len() == 2);
        let Some(char) = code.and_then(char::from_u32) else {
            let part = format!("\\x{}", text.trim_end_matches('}'));
            return Err(self.wrong("invalid escape sequence", &part));
        };
        self.piece(&format!("\\x{{{:x}}}", char as u32), 1);
        Ok(())
    }

    fn named_property(&mut self, letter: char) -> Result<(), String> {
        let (name, _) = self.braced(1);
        let text = format!("\\{letter}{name}");
        // These classes are valid, and compiling a large class is slow.
        if !GENERAL.contains(&name.trim_matches(['{', '}', '^'])) && pattern::build(&text).is_err() {
            return Err(self.wrong("invalid character class range", &text));
        }
        self.piece(&text, 600);
        Ok(())
    }

    fn octal(&mut self, first: char) -> Result<(), String> {
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
        self.piece(&format!("\\x{{{code:x}}}"), 1);
        Ok(())
    }

    /// Reads the literal text between `\Q` and `\E`.
    fn literal(&mut self) -> Result<(), String> {
        while let Some(char) = self.rest.next() {
            if char == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            self.piece(&format!("\\x{{{:x}}}", char as u32), 1);
        }
        Ok(())
    }

    /// Reads a class such as `[:alpha:]`, or a literal bracket.
    fn named_class(&mut self) -> Result<(), String> {
        let name: String =
            self.rest.clone().skip(1).take_while(|char| char.is_ascii_lowercase() || *char == '^').collect();
        let closes = self.rest.clone().skip(1 + name.len()).take(2).eq([':', ']']);
        if !closes {
            self.out.push_str("\\[");
            return Ok(());
        }
        let known = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
            "word", "xdigit",
        ];
        let text = format!("[:{name}:]");
        if !known.contains(&name.trim_start_matches('^')) {
            return Err(self.wrong("invalid character class range", &text));
        }
        for _ in 0..name.len() + 3 {
            self.rest.next();
        }
        self.out.push_str(&text);
        Ok(())
    }

    pub(super) fn class(&mut self) -> Result<(), String> {
        let rest: String = "[".chars().chain(self.rest.clone()).collect();
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        // The last two literal characters.
        let mut last: [Option<char>; 2] = [None, None];
        loop {
            let Some(char) = self.rest.next() else {
                return Err(self.wrong("missing closing ]", &rest));
            };
            if let [Some(low), Some('-')] = last
                && low > char
                && !matches!(char, ']' | '\\' | '[')
            {
                return Err(self.wrong("invalid character class range", &format!("{low}-{char}")));
            }
            last = [last[1], Some(char).filter(|char| !matches!(char, '\\' | '['))];
            match char {
                ']' if !first => break,
                ']' => self.out.push_str("\\]"),
                '\\' => self.escape(true)?,
                '[' if self.rest.peek() == Some(&':') => self.named_class()?,
                '-' if self.rest.peek() == Some(&'-') => self.out.push('-'),
                '-' if self.out.ends_with('-') => self.out.push_str("\\-"),
                '[' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(char);
                }
                _ => self.out.push(char),
            }
            first = false;
        }
        self.piece("]", 10);
        Ok(())
    }
}

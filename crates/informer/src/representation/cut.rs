//! Finds the sections of an object in its JSON without parsing the rest.

use std::ops::Range;

use super::scan::{Passing, is_blank};

/// The byte ranges of the sections of an object. Each section occurs once or not at all.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parts {
    /// The offset of the first member.
    pub(super) members: usize,
    pub(super) api_version: Option<Range<usize>>,
    pub(super) kind: Option<Range<usize>>,
    pub(super) metadata: Option<Range<usize>>,
    /// The managed fields, including one adjacent comma.
    pub(super) managed_fields: Option<Range<usize>>,
}

impl Parts {
    /// Returns true if the object has no members.
    pub(super) fn is_empty(&self, json: &str) -> bool {
        json.as_bytes().get(self.members) == Some(&b'}')
    }
}

/// Returns the sections of an object, or `None` if that needs a full parser: for duplicate keys, keys with escapes, and
/// anything that is not an object. In most of the object only brackets and quotes are checked.
pub(super) fn parts(json: &str) -> Option<Parts> {
    let mut cursor = Cursor { json: json.as_bytes(), at: 0 };
    let mut parts = Parts::default();
    cursor.blank();
    let first = cursor.members(|cursor, key, _| {
        let start = cursor.at;
        let part = match key {
            b"apiVersion" => &mut parts.api_version,
            b"kind" => &mut parts.kind,
            b"metadata" => &mut parts.metadata,
            _ => return cursor.value(),
        };
        if part.is_some() {
            return None;
        }
        if key == b"metadata" && cursor.peek() == Some(b'{') {
            parts.managed_fields = cursor.managed_fields()?;
        } else {
            cursor.value()?;
        }
        *part = Some(start..cursor.at);
        Some(())
    })?;
    parts.members = first;
    cursor.blank();
    (cursor.at == json.len()).then_some(parts)
}

/// Scans once from left to right. It stops at anything that it does not understand.
struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Scans metadata, and returns the range of the managed fields.
    fn managed_fields(&mut self) -> Option<Option<Range<usize>>> {
        let (json, mut found, mut last) = (self.json, None, None);
        self.members(|cursor, key, start| {
            let managed = key == b"managedFields";
            if managed && found.is_some() {
                return None;
            }
            cursor.value()?;
            if managed {
                found = Some((last, start, cursor.at));
            }
            last = Some(cursor.at);
            Some(())
        })?;
        let Some((before, start, end)) = found else { return Some(None) };
        // The comma after the managed fields is removed with them. If they are the last member, the comma before them
        // is removed.
        let rest = &json[end..];
        let comma = rest.iter().position(|byte| !is_blank(*byte)).filter(|at| rest[*at] == b',');
        Some(Some(match (comma, before) {
            (Some(comma), _) => start..end + comma + 1,
            (None, Some(before)) => before..end,
            (None, None) => start..end,
        }))
    }

    /// Scans an object, and returns the offset of its first member. Calls `member` after each colon, with the key and
    /// the offset of the member.
    fn members(&mut self, mut member: impl FnMut(&mut Self, &'a [u8], usize) -> Option<()>) -> Option<usize> {
        self.expect(b'{')?;
        self.blank();
        let first = self.at;
        if self.peek()? == b'}' {
            self.expect(b'}')?;
            return Some(first);
        }
        loop {
            self.blank();
            let start = self.at;
            let key = self.key()?;
            self.blank();
            self.expect(b':')?;
            self.blank();
            member(self, key, start)?;
            self.blank();
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.expect(b'}').map(|()| first),
            }
        }
    }

    /// Scans a key without escapes.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let key = &self.json[self.at..];
        let key = &key[..memchr::memchr2(b'"', b'\\', key)?];
        self.at += key.len();
        self.expect(b'"')?;
        Some(key)
    }

    fn value(&mut self) -> Option<()> {
        let length = Passing::from(self.peek()?).end_in(&self.json[self.at..])?;
        self.at += length;
        (length > 0).then_some(())
    }

    fn blank(&mut self) {
        self.at += self.json[self.at..].iter().take_while(|byte| is_blank(**byte)).count();
    }

    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

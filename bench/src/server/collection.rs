//! All objects of one kind, encoded once. An event overwrites the version and a few other digits in place.

use std::io::{self, Read, Write as _};
use std::path::Path;

use memchr::memmem;

use super::encoding::Encoding;
use crate::chance::Chance;
use crate::objects::{CHECK, FIRST_VERSION, Kind, NEVER_CHECKED, NEVER_SENT, Objects};

/// The current objects.
pub(super) struct Collection {
    pub(super) kind: Kind,
    objects: Vec<Stored>,
    /// The version of the newest object.
    version: u64,
    /// The order in which objects change, and the position in it.
    order: Vec<usize>,
    turn: usize,
}

struct Stored {
    json: Encoded,
    protobuf: Option<Encoded>,
}

/// The bytes of an object, and the positions that an event overwrites.
pub(super) struct Encoded {
    bytes: Vec<u8>,
    version: usize,
    sent: usize,
    check: usize,
}

impl Collection {
    /// Generates all objects, and reads them as protobuf messages too if there is a file.
    pub(super) fn new(kind: Kind, seed: u64, count: usize, protobuf: Option<&Path>) -> io::Result<Self> {
        let mut messages = protobuf.map(std::fs::File::open).transpose()?.map(io::BufReader::new);
        let mut objects = Vec::with_capacity(count);
        for (json, version) in Objects::new(kind, seed, count).iter().zip(FIRST_VERSION..) {
            let missing = || io::Error::other(format!("no version in object {version}"));
            let protobuf = messages.as_mut().map(next_message).transpose()?;
            let protobuf = protobuf.map(|bytes| Encoded::new(bytes, version).ok_or_else(missing)).transpose()?;
            objects.push(Stored { json: Encoded::new(json, version).ok_or_else(missing)?, protobuf });
        }
        let mut order: Vec<_> = (0..count).collect();
        Chance::new(seed, "order", 0).shuffle(&mut order);
        Ok(Self { kind, objects, version: FIRST_VERSION + count as u64, order, turn: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn speaks(&self, encoding: Encoding) -> bool {
        encoding == Encoding::Json || self.objects.first().is_some_and(|object| object.protobuf.is_some())
    }

    /// Returns the bytes of an object.
    pub(super) fn bytes(&self, number: usize, encoding: Encoding) -> &[u8] {
        let Stored { json, protobuf } = &self.objects[number];
        match (encoding, protobuf) {
            (Encoding::Protobuf, Some(protobuf)) => &protobuf.bytes,
            _ => &json.bytes,
        }
    }

    /// Changes the next object, and returns its number. `sent` is the time of sending, if latency is measured.
    pub(super) fn change(&mut self, sent: Option<u64>) -> usize {
        let number = self.order[self.turn % self.order.len()];
        self.turn += 1;
        self.version += 1;
        let Stored { json, protobuf } = &mut self.objects[number];
        for encoded in std::iter::once(json).chain(protobuf) {
            encoded.change(self.version, sent, self.turn);
        }
        number
    }

    /// Returns the size of the next events as JSON; each is `longer` bytes longer than its object.
    pub(super) fn bytes_of_next(&self, count: usize, longer: usize) -> usize {
        let all = |count: usize| {
            let turns = self.turn..self.turn + count;
            turns.map(|turn| self.objects[self.order[turn % self.order.len()]].json.bytes.len() + longer).sum::<usize>()
        };
        let (rounds, rest) = (count / self.order.len(), count % self.order.len());
        rounds * all(self.order.len()) + all(rest)
    }
}

impl Encoded {
    /// Finds the positions that an event overwrites, by their initial digits.
    fn new(bytes: Vec<u8>, version: u64) -> Option<Self> {
        // A digest may contain the same digits. A whole string follows a quote in JSON, and its length in protobuf.
        let digits = format!("{version:010}");
        let whole = |at: &usize| at.checked_sub(1).is_some_and(|before| [b'"', 10].contains(&bytes[before]));
        let version = memmem::find_iter(&bytes, digits.as_bytes()).find(whole)?;
        let sent = memmem::find(&bytes, NEVER_SENT.as_bytes())?;
        let check = memmem::find(&bytes, format!("{CHECK}{NEVER_CHECKED}").as_bytes())? + CHECK.len();
        Some(Self { bytes, version, sent, check })
    }

    fn change(&mut self, version: u64, sent: Option<u64>, check: usize) {
        self.write(self.version, format_args!("{version:010}"));
        self.write(self.check, format_args!("{check:010}"));
        if let Some(sent) = sent {
            self.write(self.sent, format_args!("{sent:020}"));
        }
    }

    fn write(&mut self, at: usize, text: std::fmt::Arguments<'_>) {
        (&mut self.bytes[at..]).write_fmt(text).expect("an object is longer than a number");
    }
}

fn next_message(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    file.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    file.read_exact(&mut message)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn object(collection: &Collection, number: usize) -> Value {
        serde_json::from_slice(collection.bytes(number, Encoding::Json)).unwrap()
    }

    #[test]
    fn an_event_changes_only_version_time_and_check() {
        let mut collection = Collection::new(Kind::Pods, 1, 40, None).unwrap();
        let before: Vec<_> = (0..40).map(|number| object(&collection, number)).collect();
        let number = collection.change(Some(1_760_000_000_123_456_789));
        let mut after = object(&collection, number);
        assert_eq!(after["metadata"]["resourceVersion"], collection.version().to_string());
        assert_eq!(after["metadata"]["annotations"]["bench.example.com/sent"], "01760000000123456789");
        assert_eq!(after["status"]["conditions"][0]["message"], "check 0000000001");
        for pointer in ["/metadata/resourceVersion", "/metadata/annotations", "/status/conditions/0/message"] {
            *after.pointer_mut(pointer).unwrap() = before[number].pointer(pointer).unwrap().clone();
        }
        assert_eq!(after, before[number]);
    }

    #[test]
    fn objects_change_in_turn_and_versions_increase() {
        let mut collection = Collection::new(Kind::Widgets, 1, 40, None).unwrap();
        let (first, expected) = (collection.version(), collection.bytes_of_next(100, 10));
        let turns: Vec<_> = (0..100).map(|_| collection.change(None)).collect();
        assert_eq!(collection.version(), first + 100);
        assert_eq!(turns[..40].iter().collect::<std::collections::BTreeSet<_>>().len(), 40);
        assert_eq!(turns[..40], turns[40..80]);
        let bytes: usize = turns.iter().map(|number| collection.bytes(*number, Encoding::Json).len() + 10).sum();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn protobuf_messages_are_read_and_changed_in_place() {
        let (count, mut file) = (3, Vec::new());
        for version in FIRST_VERSION..FIRST_VERSION + count {
            // The tag of the next field may look like a digit.
            let message = format!("\x32\x0a{version:010}8\x01\x62\x14{NEVER_SENT}\x2a\x10{CHECK}{NEVER_CHECKED}");
            file.extend_from_slice(&(message.len() as u32).to_be_bytes());
            file.extend_from_slice(message.as_bytes());
        }
        let path = std::env::temp_dir().join(format!("kube-informer-bench-{}", std::process::id()));
        std::fs::write(&path, file).unwrap();
        let mut collection = Collection::new(Kind::Pods, 1, 3, Some(&path)).unwrap();
        std::fs::remove_file(&path).unwrap();
        let number = collection.change(Some(5));
        let expected = "\x32\x0a10000000048\x01\x62\x1400000000000000000005\x2a\x10check 0000000001";
        assert_eq!(collection.bytes(number, Encoding::Protobuf), expected.as_bytes());
        assert!(collection.speaks(Encoding::Protobuf));
    }
}

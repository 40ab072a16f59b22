//! The path of the field that does not fit a type.
//!
//! A decoder that keeps track of its path costs time for each field, and is compiled a second time for each type. So the
//! path is read from the JSON, up to the position of the error, and only after a decode has failed.

/// The largest number of characters of a path.
const LONGEST: usize = 200;

/// An object or array that is open at a position.
enum Open<'j> {
    /// An object, and the key of the current member, once it was read.
    Object(Option<&'j str>),
    /// An array, and the number of the current element.
    Array(usize),
}

/// Returns the path of the field at which decoding has stopped, such as `spec.containers[1].image`; `root` for the whole
/// object. It contains keys of maps, but no values.
pub(super) fn field_path(root: &str, json: &str, error: &serde_json::Error) -> String {
    let mut path = root.to_owned();
    for open in open_at(json, bytes_read(json, error)) {
        match open {
            Open::Object(None) => {}
            Open::Object(Some(key)) if is_simple(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
            Open::Object(Some(key)) => path.push_str(&format!("[\"{key}\"]")),
            Open::Array(element) => path.push_str(&format!("[{element}]")),
        }
    }
    if let Some((end, _)) = path.char_indices().nth(LONGEST) {
        path.truncate(end);
        path.push('…');
    }
    path
}

/// Returns how many bytes the decoder had read when it found the error.
fn bytes_read(json: &str, error: &serde_json::Error) -> usize {
    let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
    (lines.map(str::len).sum::<usize>() + error.column()).min(json.len())
}

/// Returns the objects and arrays that are open after this many bytes, the outermost first. The decoder has read these
/// bytes, so they are valid JSON.
fn open_at(json: &str, end: usize) -> Vec<Open<'_>> {
    let (bytes, mut open, mut at) = (json.as_bytes(), Vec::new(), 0);
    while at < end {
        match bytes[at] {
            b'"' => {
                let start = at + 1;
                at = end_of_string(bytes, start);
                if let Some(Open::Object(key @ None)) = open.last_mut() {
                    *key = json.get(start..at);
                }
            }
            b'{' => open.push(Open::Object(None)),
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Object(key)) => *key = None,
                Some(Open::Array(element)) => *element += 1,
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    open
}

/// Returns the position of the quote that ends a string.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

fn is_simple(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

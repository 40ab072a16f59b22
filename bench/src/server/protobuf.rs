//! The parts of protobuf that a list and a watch need around encoded objects.

/// The first bytes of every Kubernetes protobuf message.
const MAGIC: &[u8] = b"k8s\0";

/// Appends a field of bytes, a message or a string, which have the same encoding.
pub(super) fn field(to: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    field_head(to, number, bytes.len());
    to.extend_from_slice(bytes);
}

/// Appends the head of a field with this many bytes.
pub(super) fn field_head(to: &mut Vec<u8>, number: u8, length: usize) {
    const LENGTH_DELIMITED: u8 = 2;
    to.push((number << 3) | LENGTH_DELIMITED);
    varint(to, length);
}

/// Appends a field with a number.
pub(super) fn number_field(to: &mut Vec<u8>, number: u8, value: usize) {
    to.push(number << 3);
    varint(to, value);
}

/// Appends the head of a Kubernetes message: magic bytes, type, and length of the object.
pub(super) fn envelope_head(to: &mut Vec<u8>, api_version: &str, kind: &str, length: usize) {
    let mut type_meta = Vec::new();
    field(&mut type_meta, 1, api_version.as_bytes());
    field(&mut type_meta, 2, kind.as_bytes());
    to.extend_from_slice(MAGIC);
    field(to, 1, &type_meta);
    field_head(to, 2, length);
}

fn varint(to: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let mut bytes = Vec::new();
        number_field(&mut bytes, 6, 410);
        field(&mut bytes, 2, b"v1");
        assert_eq!(bytes, [0x30, 0x9a, 0x03, 0x12, 2, b'v', b'1']);
    }

    #[test]
    fn an_envelope_has_type_and_length() {
        let mut bytes = Vec::new();
        envelope_head(&mut bytes, "v1", "Pod", 300);
        assert_eq!(bytes, b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\xac\x02");
    }
}

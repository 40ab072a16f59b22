//! As much of protobuf as is needed to understand small messages.

/// What Kubernetes puts before every protobuf body.
const MAGIC: &[u8] = b"k8s\0";

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
    /// A number of fixed width, which nothing here needs.
    Fixed,
}

/// The message inside the envelope of a Kubernetes body.
pub(super) fn envelope(body: &[u8]) -> Option<&[u8]> {
    let unknown = body.strip_prefix(MAGIC)?;
    let mut message = &[][..];
    for field in fields(unknown) {
        if let Field::Bytes(2, raw) = field? {
            message = raw;
        }
    }
    Some(message)
}

/// The fields of a message in order; `None` where it is broken, and nothing after that.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = Option<Field<'_>>> {
    let mut rest = Some(message);
    std::iter::from_fn(move || {
        let mut left = rest.filter(|left| !left.is_empty())?;
        let field = field(&mut left);
        rest = field.is_some().then_some(left);
        Some(field)
    })
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<Field<'a>> {
    let tag = varint(rest)?;
    let number = tag >> 3;
    match tag & 7 {
        0 => Some(Field::Number(number, varint(rest)?)),
        1 => take(rest, 8).map(|_| Field::Fixed),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Some(Field::Bytes(number, take(rest, length)?))
        }
        5 => take(rest, 4).map(|_| Field::Fixed),
        _ => None,
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

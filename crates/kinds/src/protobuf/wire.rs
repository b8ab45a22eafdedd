//! Protobuf's wire format: numbered fields, each a number or a run of bytes.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Datum<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Datum<'a> {
    /// The bytes, if these are some.
    pub fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Datum::Bytes(bytes) => Ok(bytes),
            _ => Err("a field has the wrong wire type".to_owned()),
        }
    }

    /// The number, if this is one.
    pub fn varint(self) -> Result<u64, String> {
        match self {
            Datum::Varint(number) => Ok(number),
            _ => Err("a field has the wrong wire type".to_owned()),
        }
    }
}

/// Reads the fields of a message one by one. After an error there are no more.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of a message's bytes.
    pub fn new(text: &'a [u8]) -> Self {
        Reader(text)
    }

    /// The next of packed numbers.
    pub fn packed(&mut self) -> Option<Result<u64, String>> {
        (!self.0.is_empty()).then(|| self.varint())
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.0.split_first() else { return Err(self.broken("unexpected EOF")) };
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.broken("proto: integer overflow"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let Some((taken, rest)) = self.0.split_at_checked(length) else { return Err(self.broken("unexpected EOF")) };
        self.0 = rest;
        Ok(taken)
    }

    fn broken(&mut self, why: &str) -> String {
        self.0 = &[];
        why.to_owned()
    }

    fn field(&mut self) -> Result<(u32, Datum<'a>), String> {
        let head = self.varint()?;
        let tag = u32::try_from(head >> 3).map_err(|_| self.broken("proto: illegal tag"))?;
        let datum = match head & 7 {
            0 => Datum::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Datum::Fixed64(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| self.broken("unexpected EOF"))?;
                Datum::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?;
                Datum::Fixed32(bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
            }
            other => return Err(self.broken(&format!("proto: illegal wireType {other}"))),
        };
        Ok((tag, datum))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Datum<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| self.field())
    }
}

/// Writes the fields of a message one by one.
pub struct Writer(Vec<u8>);

impl Writer {
    /// A writer after what stands already.
    pub fn new(start: &[u8]) -> Self {
        Writer(start.to_vec())
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Writes a number of variable length.
    pub fn varint(&mut self, tag: u32, number: u64) {
        push(&mut self.0, u64::from(tag) << 3);
        push(&mut self.0, number);
    }

    /// Writes eight bytes.
    pub fn fixed64(&mut self, tag: u32, bits: u64) {
        push(&mut self.0, u64::from(tag) << 3 | 1);
        self.0.extend(bits.to_le_bytes());
    }

    /// Writes a run of bytes.
    pub fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        push(&mut self.0, u64::from(tag) << 3 | 2);
        push(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a message that holds nothing but a run of bytes.
    pub fn bytes_in(&mut self, tag: u32, inner: u32, bytes: &[u8]) {
        let length = size(u64::from(inner) << 3) + size(bytes.len() as u64) + bytes.len();
        push(&mut self.0, u64::from(tag) << 3 | 2);
        push(&mut self.0, length as u64);
        self.bytes(inner, bytes);
    }

    /// Writes a message; none if `write` gives none.
    pub fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        push(&mut self.0, u64::from(tag) << 3 | 2);
        let start = self.0.len();
        write(self)?;
        // The length, which stands before the message, is known only now.
        let end = self.0.len();
        push(&mut self.0, (end - start) as u64);
        let width = self.0.len() - end;
        if let Some(message) = self.0.get_mut(start..) {
            message.rotate_right(width);
        }
        Some(())
    }
}

/// How many bytes a number of variable length takes.
fn size(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

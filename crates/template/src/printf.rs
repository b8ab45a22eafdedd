//! Go's `fmt.Sprintf`: the format string.

use crate::print::{Flags, Printer};
use crate::value::{Heap, Result, Val};
use std::fmt::Write;

/// The largest width, precision or index, as in Go.
const MAX_NUMBER: usize = 1_000_000;

/// Operands in a format.
pub(crate) fn sprintf<'a>(heap: &Heap<'a>, format: &str, args: &[Val<'a>]) -> Result<String> {
    let mut f =
        Format { printer: Printer::new(heap), format, at: 0, args, next: 0, reordered: false, good_index: true };
    f.run()?;
    Ok(f.printer.out)
}

struct Format<'h, 'f, 'a> {
    printer: Printer<'h, 'a>,
    format: &'f str,
    at: usize,
    args: &'f [Val<'a>],
    /// The operand that is next.
    next: usize,
    /// Whether an index was used; unused operands are no mistake then.
    reordered: bool,
    good_index: bool,
}

impl Format<'_, '_, '_> {
    fn run(&mut self) -> Result<()> {
        while let Some(x) = self.format[self.at..].find('%') {
            self.printer.out.push_str(&self.format[self.at..self.at + x]);
            self.at += x + 1;
            self.good_index = true;
            if !self.verb()? {
                break;
            }
        }
        if self.at < self.format.len() {
            self.printer.out.push_str(&self.format[self.at..]);
        }
        if !self.reordered && self.next < self.args.len() {
            self.extra()?;
        }
        Ok(())
    }

    fn extra(&mut self) -> Result<()> {
        self.printer.flags = Flags::default();
        self.printer.out.push_str("%!(EXTRA ");
        let heap_names: Vec<&Val> = self.args[self.next..].iter().collect();
        for (i, arg) in heap_names.into_iter().enumerate() {
            if i > 0 {
                self.printer.out.push_str(", ");
            }
            if !arg.is_nil() {
                self.printer.arg(arg, 'T')?;
                self.printer.out.push('=');
            }
            self.printer.arg(arg, 'v')?;
        }
        self.printer.out.push(')');
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.format.as_bytes().get(self.at).copied()
    }

    fn flags(&mut self) {
        let mut flags = Flags::default();
        while let Some(c) = self.peek() {
            match c {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        self.printer.flags = flags;
    }

    /// One verb with its flags. False where the format ends before it.
    fn verb(&mut self) -> Result<bool> {
        self.flags();
        let mut after_index = self.index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.int_arg() {
                Some(n) => {
                    self.printer.flags.width = Some(n.unsigned_abs() as usize);
                    if n < 0 {
                        self.printer.flags.minus = true;
                        self.printer.flags.zero = false;
                    }
                }
                None => self.printer.out.push_str("%!(BADWIDTH)"),
            }
            after_index = false;
        } else {
            self.printer.flags.width = self.number();
            if after_index && self.printer.flags.width.is_some() {
                self.good_index = false;
            }
        }
        // A point at the very end is the verb.
        if self.peek() == Some(b'.') && self.at + 1 < self.format.len() {
            self.at += 1;
            if after_index {
                self.good_index = false;
            }
            after_index = self.index();
            if self.peek() == Some(b'*') {
                self.at += 1;
                let precision = self.int_arg().and_then(|n| usize::try_from(n).ok());
                if precision.is_none() {
                    self.printer.out.push_str("%!(BADPREC)");
                }
                self.printer.flags.precision = precision;
                after_index = false;
            } else {
                self.printer.flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index();
        }
        let Some(verb) = self.format[self.at..].chars().next() else {
            self.printer.out.push_str("%!(NOVERB)");
            return Ok(false);
        };
        self.at += verb.len_utf8();
        if verb == '%' {
            self.printer.out.push('%');
            return Ok(true);
        }
        let Some(arg) = self.args.get(self.next).filter(|_| self.good_index) else {
            let problem = if self.good_index { "MISSING" } else { "BADINDEX" };
            let _ = write!(self.printer.out, "%!{verb}({problem})");
            return Ok(true);
        };
        if verb == 'v' {
            let flags = &mut self.printer.flags;
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        self.printer.arg(arg, verb)?;
        self.next += 1;
        Ok(true)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(c @ b'0'..=b'9') = self.peek() {
            let n = number.unwrap_or(0);
            if n > MAX_NUMBER {
                self.at = self.format.len();
                return None;
            }
            number = Some(n * 10 + usize::from(c - b'0'));
            self.at += 1;
        }
        number
    }

    fn int_arg(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        match arg {
            Val::Int(i, _) if i.unsigned_abs() <= MAX_NUMBER as u64 => Some(*i),
            _ => None,
        }
    }

    /// An explicit operand `[n]`; whether one stands here.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let Some(end) = self.format[self.at..].find(']') else {
            self.good_index = false;
            self.at += 1;
            return false;
        };
        let digits = &self.format[self.at + 1..self.at + end];
        self.at += end + 1;
        let index = digits.parse::<usize>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        match index {
            Some(n) if n >= 1 && n <= self.args.len() => {
                self.next = n - 1;
                true
            }
            found => {
                self.good_index = false;
                found.is_some()
            }
        }
    }
}

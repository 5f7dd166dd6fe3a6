//! Numbers as C reads them: as far as the text fits, the rest dropped in silence.

/// A number and how much of the text it was read from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Read<T> {
    pub value: T,
    used: usize,
}

/// Numbers that can be compared with what a person reads in the whole text.
pub(super) trait Number: Copy {
    fn as_f64(self) -> f64;
}

impl Number for i64 {
    fn as_f64(self) -> f64 {
        self as f64
    }
}

impl Number for f64 {
    fn as_f64(self) -> f64 {
        self
    }
}

impl<T: Number> Read<T> {
    /// Whether nothing was dropped that makes a difference: `512.0` is read as 512, and is 512.
    pub fn is_all_of(&self, text: &str) -> bool {
        self.used == text.len() || text.parse::<f64>().is_ok_and(|whole| whole == self.value.as_f64())
    }
}

/// A whole number as `stoi` reads it, in decimal digits.
pub(super) fn whole(text: &str) -> Option<Read<i64>> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let used = sign + text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let value = text[..used].parse().ok()?;
    Some(Read { value, used })
}

/// A number as `stof` reads it, also in hexadecimal digits.
pub(super) fn fraction(text: &str) -> Option<Read<f64>> {
    hexadecimal(text).or_else(|| {
        let whole = text.parse().ok().map(|value| Read { value, used: text.len() });
        whole.or_else(|| {
            let ends = (1..=text.len().min(64)).rev().filter(|end| text.is_char_boundary(*end));
            ends.filter_map(|used| Some(Read { value: text[..used].parse().ok()?, used })).next()
        })
    })
}

/// `0x1.8p-1`: digits of base 16, then a power of two.
fn hexadecimal(text: &str) -> Option<Read<f64>> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let start = sign + 2;
    if !text.get(sign..start)?.eq_ignore_ascii_case("0x") {
        return None;
    }
    let bytes = text.as_bytes();
    let digits = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let before = digits(start);
    let mut used = start + before;
    let mut after = 0;
    if bytes.get(used) == Some(&b'.') {
        after = digits(used + 1);
        if before + after > 0 {
            used += 1 + after;
        }
    }
    if before + after == 0 {
        return None;
    }
    let mut value = 0.0;
    for byte in &bytes[start..used] {
        if let Some(digit) = char::from(*byte).to_digit(16) {
            value = value * 16.0 + f64::from(digit);
        }
    }
    let mut power = i32::try_from(after).ok()?.checked_mul(-4)?;
    if bytes.get(used).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'p'))
        && let Some(exponent) = whole(&text[used + 1..])
    {
        power = power.saturating_add(i32::try_from(exponent.value).ok()?);
        used += 1 + exponent.used;
    }
    value *= f64::from(power).exp2();
    Some(Read { value: if text.starts_with('-') { -value } else { value }, used })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_far_as_they_fit() {
        for (text, value, all) in [
            ("512", 512, true),
            ("+3", 3, true),
            ("-3", -3, true),
            ("512.0", 512, true),
            ("8k", 8, false),
            ("1e3", 1, false),
            ("64.9", 64, false),
            ("0x10", 0, false),
        ] {
            let read = whole(text).unwrap();
            assert_eq!((read.value, read.is_all_of(text)), (value, all), "{text}");
        }
        assert!(whole("k").is_none() && whole("-").is_none() && whole("").is_none());
        for (text, value, all) in [
            ("0.5", 0.5, true),
            ("0.5f", 0.5, false),
            ("0,5", 0.0, false),
            ("1e-2", 0.01, true),
            ("0x1p-1", 0.5, true),
            ("0X1.8p+1", 3.0, true),
            ("-0x10", -16.0, true),
            ("0x1pz", 1.0, false),
            ("0x", 0.0, false),
            ("0x.", 0.0, false),
            ("1é", 1.0, false),
        ] {
            let read = fraction(text).unwrap();
            assert_eq!((read.value, read.is_all_of(text)), (value, all), "{text}");
        }
        assert!(fraction("x").is_none() && fraction("").is_none());
    }
}

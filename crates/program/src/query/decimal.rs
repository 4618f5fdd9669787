//! Decimal numbers in texts of jobs and models: nothing is rounded.

/// Units and places of a decimal as it is written: digits, with a point between them or without.
pub(super) fn decimal(text: &str) -> Result<(i128, u32), String> {
    let wrong = || {
        let shown: String = text.chars().take(50).collect();
        format!("`{shown}` is no decimal number of at most 38 digits: write it as \"-41.5\"")
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all(whole) || !all(part) || text.len() > 64 {
        return Err(wrong());
    }
    let places = digits.split_once('.').map_or(0, |(_, part)| part.len());
    let units = text.replacen('.', "", 1).parse().map_err(|_| wrong())?;
    Ok((units, places as u32))
}

/// The same, without superfluous zeros behind the point.
pub(super) fn shortest(text: &str) -> Option<(i128, u32)> {
    let (mut units, mut places) = decimal(text).ok()?;
    while places > 0 && units % 10 == 0 {
        units /= 10;
        places -= 1;
    }
    Some((units, places))
}

/// A number in units of a model.
pub(super) fn units(text: &str, places: u32) -> Result<i128, String> {
    let (units, found) = decimal(text)?;
    let more = places.checked_sub(found).ok_or_else(|| {
        format!("`{text}` has more than the {places} decimal places of the model; it is rounded where the file is written, and not here")
    })?;
    let power = 10_i128.checked_pow(more);
    let units = power.and_then(|power| units.checked_mul(power));
    units.ok_or_else(|| format!("`{text}` does not fit 128 bits"))
}

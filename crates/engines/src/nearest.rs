//! The nearest real names to one that is not.

/// Edit distance with transpositions (optimal string alignment), counted in characters.
pub fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let width = b.len() + 1;
    let mut rows = vec![0usize; (a.len() + 1) * width];
    for (column, cell) in rows.iter_mut().take(width).enumerate() {
        *cell = column;
    }
    for row in 1..=a.len() {
        rows[row * width] = row;
        for column in 1..=b.len() {
            let change = usize::from(a[row - 1] != b[column - 1]);
            let mut best = (rows[(row - 1) * width + column] + 1)
                .min(rows[row * width + column - 1] + 1)
                .min(rows[(row - 1) * width + column - 1] + change);
            if row > 1 && column > 1 && a[row - 1] == b[column - 2] && a[row - 2] == b[column - 1] {
                best = best.min(rows[(row - 2) * width + column - 2] + 1);
            }
            rows[row * width + column] = best;
        }
    }
    rows[a.len() * width + b.len()]
}

/// The up to `most` names that are near enough to be meant, nearest first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<String> {
    // Longer than any real flag: not a slip of the fingers, and not worth a quadratic comparison.
    if name.len() > 128 {
        return Vec::new();
    }
    let allowed = (name.chars().count() / 3).clamp(1, 5);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .map(|real| (distance(name, real), real))
        .filter(|(far, real)| {
            *far <= allowed
                || (name.len() >= 6 && (real.starts_with(name) || name.starts_with(real) && real.len() >= 6))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(most).map(|(_, real)| real.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_is_one_step() {
        assert_eq!(distance("--spec-tpye", "--spec-type"), 1);
    }

    #[test]
    fn finds_what_was_meant_and_nothing_far() {
        let known = ["--spec-type", "--ctx-size", "--split-mode"];
        assert_eq!(nearest("--spec-tpye", known, 3), ["--spec-type"]);
        assert!(nearest("--zzzzzz", known, 3).is_empty());
        assert_eq!(nearest("LLAMA_ARG_CTX", ["LLAMA_ARG_CTX_SIZE"], 1), ["LLAMA_ARG_CTX_SIZE"]);
    }
}

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
    let known: Vec<&str> = known.into_iter().collect();
    // What all names begin with, a prefix of variables or two dashes, tells nothing of what was meant.
    let shared = match known.split_first() {
        Some((first, rest)) if !rest.is_empty() => rest.iter().fold(*first, |shared, real| {
            let same = shared.char_indices().zip(real.chars()).take_while(|((_, a), b)| a == b).last();
            &shared[..same.map_or(0, |((at, char), _)| at + char.len_utf8())]
        }),
        _ => "",
    };
    let own = name.strip_prefix(shared).unwrap_or(name);
    let allowed = (own.chars().count() / 3).clamp(1, 5);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .map(|real| (distance(name, real), real))
        .filter(|(far, real)| {
            *far <= allowed
                || (own.len() >= 3
                    && name.len() >= 6
                    && (real.starts_with(name) || name.starts_with(real) && real.len() >= 6))
        })
        .collect();
    found.sort();
    found.dedup();
    // Where one is much nearer, the others are not meant.
    let best = found.first().map_or(0, |(far, _)| *far);
    found.into_iter().filter(|(far, _)| *far <= best + 2).take(most).map(|(_, real)| real.to_string()).collect()
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

    #[test]
    fn a_shared_prefix_makes_nothing_near() {
        let known = ["LLAMA_ARG_FIT_CTX", "LLAMA_ARG_CTX_SIZE", "LLAMA_ARG_CPU_MOE", "LLAMA_ARG_DEVICE"];
        assert!(nearest("LLAMA_ARG_FOO_BAR", known, 3).is_empty());
        assert_eq!(nearest("LLAMA_ARG_CTXSIZE", known, 3), ["LLAMA_ARG_CTX_SIZE"]);
        assert_eq!(nearest("LLAMA_ARG_CTX", known, 3), ["LLAMA_ARG_CTX_SIZE"]);
    }
}

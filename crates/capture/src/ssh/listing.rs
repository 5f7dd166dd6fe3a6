//! What `ls -ln` says about links under `/proc`, with what is not printable escaped as in C.

/// One link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// The directory that was listed, where several were.
    pub directory: Option<String>,
    /// Its name.
    pub name: String,
    /// Where it leads; `None` if that may not be seen.
    pub target: Option<String>,
    /// May be read, may be written: of a descriptor, how it was opened.
    pub modes: (bool, bool),
}

/// Reads a listing. What does not look like one of a link is left out.
pub(super) fn parse(listing: &[u8]) -> Vec<Link> {
    let text = String::from_utf8_lossy(listing);
    let mut directory: Option<String> = None;
    let mut links = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| name.starts_with('/')) {
            directory = Some(plain(name));
        } else if let Some(link) = parse_line(line, &directory) {
            links.push(link);
        }
    }
    links
}

/// `lr-x------ 1 0 0 64 Nov 30 11:03 NAME -> TARGET`: mode, links, user, group, size, month, day, time or year.
fn parse_line(line: &str, directory: &Option<String>) -> Option<Link> {
    let mut rest = line;
    let mut fields = [""; 8];
    for field in &mut fields {
        rest = rest.trim_start_matches(' ');
        let end = rest.find(' ')?;
        *field = &rest[..end];
        rest = &rest[end..];
    }
    let mode = fields[0].as_bytes();
    if mode.first() != Some(&b'l') || mode.len() < 10 {
        return None;
    }
    let rest = rest.strip_prefix(' ')?;
    let (name, target) = rest.split_once(" -> ").map_or((rest, None), |(name, target)| (name, Some(plain(target))));
    let modes = (mode[1] == b'r', mode[2] == b'w');
    Some(Link { directory: directory.clone(), name: plain(name), target, modes })
}

/// Undoes escapes as in C.
pub(super) fn plain(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(byte @ b'0'..=b'7') => {
                let mut value = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(byte @ b'0'..=b'7') = bytes.peek().copied() else { break };
                    value = value * 8 + u32::from(byte - b'0');
                    bytes.next();
                }
                out.push(value as u8);
            }
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'v') => out.push(11),
            Some(byte) => out.push(byte),
            None => out.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_real_ls() {
        let dir = tempfile::tempdir().unwrap();
        let (link, target) = (dir.path().join("a -> b\né"), "/x y/-> z\\\n/proc/1/fd:");
        std::os::unix::fs::symlink(target, &link).unwrap();
        std::fs::create_dir(dir.path().join("other")).unwrap();
        let listed = std::process::Command::new("ls")
            .env("LC_ALL", "C")
            .arg("-lnb")
            .args([dir.path(), &dir.path().join("other")])
            .output()
            .unwrap();
        let links = parse(&listed.stdout);
        assert_eq!(links.len(), 1, "{links:?}");
        assert_eq!(links[0].directory.as_deref(), dir.path().to_str());
        assert_eq!(links[0].target.as_deref(), Some(target));
        assert_eq!(links[0].name, "a -> b\né");
    }

    #[test]
    fn of_descriptors() {
        let links = parse(
            b"/proc/7/fd:\ntotal 0\nlr-x------ 1 0 0 64 Nov 30 10:58 0 -> /dev/null\nl-wx------ 1 0 0 64 Nov 30 2025 2 -> pipe:[7]\n\
            l????????? ? ? ? ? ? 3\nlrwx------ 1 0 0 64 Nov 30 11:03 4\ngarbage\n",
        );
        let shown: Vec<_> = links.iter().map(|link| (link.name.as_str(), link.target.as_deref(), link.modes)).collect();
        assert_eq!(
            shown,
            [
                ("0", Some("/dev/null"), (true, false)),
                ("2", Some("pipe:[7]"), (false, true)),
                ("4", None, (true, true))
            ]
        );
        assert_eq!(links[1].directory.as_deref(), Some("/proc/7/fd"));
    }
}

//! Reading files that somebody else owns: only regular ones, only so much, and as the process sees them.

use crate::process;
use aho_corasick::AhoCorasick;
use ascertain_model::capture::ArtifactGap;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A log up to this size is taken whole.
pub const WHOLE: u64 = 16 << 20;
/// Of a larger one, so much of its beginning…
pub const HEAD: u64 = 1 << 20;
/// …and so much of its end.
pub const TAIL: u64 = 8 << 20;

/// The file tree in which paths are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(Option<PathBuf>);

impl Root {
    /// Our own.
    pub fn ours() -> Self {
        Root(None)
    }

    /// The one a process sees: another than ours if it lives in another mount namespace (a container) or was given
    /// another root.
    pub fn of(pid: u32) -> Self {
        let us = std::process::id();
        let same = |name: &str| match (process::link(pid, name), process::link(us, name)) {
            (Ok(theirs), Ok(ours)) => theirs == ours,
            // Not to be seen: then its root cannot be entered either.
            _ => true,
        };
        if same("ns/mnt") && same("root") { Root(None) } else { Root(Some(process::path(pid, "root"))) }
    }

    /// Whether it is not ours.
    pub fn is_other(&self) -> bool {
        self.0.is_some()
    }

    /// A path in it, as we would write it.
    pub fn shown(&self, path: &Path) -> String {
        match &self.0 {
            None => path.display().to_string(),
            Some(root) => format!("{}{}", root.display(), path.display()),
        }
    }
}

/// Opens a regular file for reading; never waits for the other end of a pipe, never opens a device.
pub fn open(path: &Path, root: &Root) -> io::Result<(File, Metadata)> {
    let file = match &root.0 {
        None => {
            regular(&std::fs::metadata(path)?)?;
            std::fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?
        }
        Some(root) => {
            // Links in there must be followed as the process would follow them.
            let tree = File::open(root)?;
            let relative = path.strip_prefix("/").unwrap_or(path);
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            File::from(rustix::fs::openat2(&tree, relative, flags, Mode::empty(), ResolveFlags::IN_ROOT)?)
        }
    };
    let metadata = file.metadata()?;
    regular(&metadata)?;
    Ok((file, metadata))
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        if metadata.is_dir() { "it is a directory" } else { "it is not a regular file" },
    ))
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Last change, see [`changed_ms`].
    pub changed_ms: Option<u64>,
    /// Which part was taken, if not the whole.
    pub partial: Option<String>,
}

/// When a file was last written, or put in its place under its name, whichever is later: milliseconds since the epoch.
/// An older file that is moved over another keeps the time at which it was written.
pub fn changed_ms(metadata: &Metadata) -> Option<u64> {
    let written = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
    let placed = i128::from(metadata.ctime()) * 1000 + i128::from(metadata.ctime_nsec()) / 1_000_000;
    u64::try_from(written).ok().max(u64::try_from(placed).ok())
}

/// Reads the beginning of a file, at most `limit` bytes.
pub fn read_head(path: &Path, root: &Root, limit: u64) -> io::Result<Content> {
    let (file, metadata) = open(path, root)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let partial = (bytes.len() as u64 > limit).then(|| format!("the first {limit} of {} bytes", metadata.len()));
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Content { bytes, changed_ms: changed_ms(&metadata), partial })
}

/// How far back a long file is searched for the beginning of its last start.
const SEARCHED: u64 = 1 << 30;
const CHUNK: u64 = 4 << 20;
/// So much before it is kept too.
pub(crate) const BEFORE: usize = 4 << 10;

/// Reads a file whole, or if it is larger than [`WHOLE`]: from the last line that holds one of `beginnings` on, and its
/// end; without such a line its beginning and its end. The cuts are made at the ends of lines where there are any, so
/// that no half of a secret is left that nobody would recognise.
pub fn read_ends(path: &Path, root: &Root, beginnings: &[String]) -> io::Result<Content> {
    let (file, metadata) = open(path, root)?;
    let length = metadata.len();
    ends(file, length, changed_ms(&metadata), |file| last_beginning(file, length, beginnings))
}

/// The same for anything that can be read: `find` looks where its last start begins.
pub(crate) fn ends<F: Read + Seek>(
    mut file: F,
    length: u64,
    changed_ms: Option<u64>,
    find: impl FnOnce(&mut F) -> io::Result<Option<u64>>,
) -> io::Result<Content> {
    let mut bytes = Vec::new();
    if length <= WHOLE {
        // A file that grows meanwhile, or whose length is not known (`/proc`), has an end too.
        file.take(WHOLE).read_to_end(&mut bytes)?;
        return Ok(Content { bytes, changed_ms, partial: None });
    }
    let begin = find(&mut file)?;
    let from = begin.unwrap_or(0);
    if from > 0 {
        bytes.extend_from_slice(format!("[ascertain: {from} bytes left out here]\n").as_bytes());
    }
    let marked = bytes.len();
    file.seek(SeekFrom::Start(from))?;
    if length - from <= WHOLE {
        file.take(WHOLE).read_to_end(&mut bytes)?;
        let partial = format!("the last {} of {length} bytes, from the last start on", bytes.len() - marked);
        return Ok(Content { bytes, changed_ms, partial: Some(partial) });
    }
    (&mut file).take(HEAD).read_to_end(&mut bytes)?;
    if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n').filter(|end| *end > marked) {
        bytes.truncate(end + 1);
    }
    let head = bytes.len() - marked;
    file.seek(SeekFrom::Start(length - TAIL))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    let start = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let left_out = length.saturating_sub(from + head as u64 + (tail.len() - start) as u64);
    let partial = format!("{head} bytes from byte {from} on and the last {} of {length}", tail.len() - start);
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    let what = if begin.is_some() { "bytes without a start" } else { "bytes" };
    bytes.extend_from_slice(format!("[ascertain: {left_out} {what} left out here]\n").as_bytes());
    bytes.extend_from_slice(&tail[start..]);
    Ok(Content { bytes, changed_ms, partial: Some(partial) })
}

/// Where the last line begins that holds one of some texts, searched from the end.
fn last_beginning(file: &mut File, length: u64, beginnings: &[String]) -> io::Result<Option<u64>> {
    let Some(longest) = beginnings.iter().map(String::len).max().filter(|longest| *longest > 0) else {
        return Ok(None);
    };
    let finder = match AhoCorasick::new(beginnings) {
        Ok(finder) => finder,
        Err(_) => return Ok(None),
    };
    let least = length.saturating_sub(SEARCHED);
    let mut end = length;
    let mut chunk = Vec::new();
    while end > least {
        let start = end.saturating_sub(CHUNK).max(least);
        // A text may lie across two chunks.
        let until = (end + longest as u64).min(length);
        chunk.clear();
        file.seek(SeekFrom::Start(start))?;
        (&mut *file).take(until - start).read_to_end(&mut chunk)?;
        if let Some(found) = finder.find_iter(&chunk).last() {
            // A start may have said something before the line that gives it away.
            let before = found.start().saturating_sub(BEFORE);
            let line = match before {
                0 if start == 0 => 0,
                _ => chunk[before..found.start()]
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(before, |at| before + at + 1),
            };
            return Ok(Some(start + line as u64));
        }
        end = start;
    }
    Ok(None)
}

/// The gap a failed read leaves.
pub fn gap(error: &io::Error, path: &str) -> ArtifactGap {
    let (reason, remedy) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ("not_present", None),
        io::ErrorKind::PermissionDenied => {
            ("not_permitted", Some("run as the user of the server or as root".to_owned()))
        }
        _ if error.raw_os_error() == Some(3) => ("not_present", None),
        _ => ("malformed", None),
    };
    let text = match reason {
        "not_present" => format!("there is no {path}"),
        "not_permitted" => format!("not permitted to read {path}"),
        _ => format!("cannot read {path}: {error}"),
    };
    ArtifactGap { reason: reason.to_owned(), text, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_start_of_a_long_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let filler = "a line that says nothing about anything\n".repeat(250_000);
        let markers = ["this is a start".to_string()];
        let long = |before: &str, after: &str| {
            std::fs::write(&path, format!("first: this is a start\n{before}last: this is a start\n{after}")).unwrap();
            let read = read_ends(&path, &Root::ours(), &markers).unwrap();
            String::from_utf8(read.bytes).unwrap()
        };
        let text = long(&filler, &filler);
        let mut lines = text.lines();
        assert!(lines.next().unwrap().starts_with("[ascertain: "));
        assert_eq!(lines.next(), Some("a line that says nothing about anything"));
        assert!(text.contains("\nlast: this is a start\n") && !text.contains("first: "));
        let text = long("", &filler.repeat(3));
        assert!(text.contains("last: this is a start\n") && text.contains(" bytes without a start left out here]\n"));
    }

    #[test]
    fn only_regular_files_and_only_so_much() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"0123456789").unwrap();
        let read = read_head(&path, &Root::ours(), 4).unwrap();
        assert_eq!((read.bytes.as_slice(), read.partial.as_deref()), (&b"0123"[..], Some("the first 4 of 10 bytes")));
        assert_eq!(read_head(&path, &Root::ours(), 10).unwrap().partial, None);
        for path in [dir.path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            assert!(open(path, &Root::ours()).is_err());
        }
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(open(&fifo, &Root::ours()).is_err());
        let other = Root(Some(PathBuf::from("/proc/self/root")));
        assert_eq!(read_head(&path, &other, 99).unwrap().bytes, b"0123456789");
        assert!(open(&fifo, &other).is_err());
    }

    #[test]
    fn links_are_followed_inside_the_other_tree() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join("etc/hostname"), b"inner").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("../../../../etc/hostname", dir.path().join("up")).unwrap();
        let root = Root(Some(dir.path().to_owned()));
        for name in ["/link", "/up", "/../etc/hostname"] {
            assert_eq!(read_head(Path::new(name), &root, 99).unwrap().bytes, b"inner");
        }
    }

    #[test]
    fn a_large_log_keeps_both_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = File::create(&path).unwrap();
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        file.write_all(b"first\n").unwrap();
        for _ in 0..200_000 {
            file.write_all(&line).unwrap();
        }
        file.write_all(b"last\n").unwrap();
        let read = read_ends(&path, &Root::ours(), &[]).unwrap();
        assert!(read.bytes.starts_with(b"first\n") && read.bytes.ends_with(b"\nlast\n"));
        assert!(read.bytes.len() as u64 <= HEAD + TAIL + 100);
        let text = String::from_utf8(read.bytes).unwrap();
        let cut = text.lines().find(|line| line.starts_with("[ascertain: ")).unwrap();
        let left_out: usize = cut.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(left_out + text.len() - cut.len() - 1, 20_000_011);
        assert!(text.lines().all(|line| line.len() == 99 || line.len() < 6 || line == cut));
        assert!(read.partial.is_some());
    }
}

//! Finding and opening the files of a journal.

use crate::entries::Entries;
use crate::file::{FileInfo, JournalFile};
use crate::filter::Filter;
use crate::gap::{Gap, Reason};
use crate::id::Id128;
use crate::limits::Limits;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Memory for windows of all files together; each file gets its share, at least 2 and at most 32 windows of 256 KiB.
const WINDOW_MEMORY: usize = 64 << 20;
const LARGEST_WINDOW: usize = 256 << 10;

/// The files of one journal, opened read-only.
///
/// A snapshot: entries that are written later are seen after [`Journal::refresh`].
#[derive(Clone)]
pub struct Journal {
    pub(crate) files: Vec<Arc<JournalFile>>,
    pub(crate) limits: Limits,
    paths: Vec<PathBuf>,
    /// What opening the files met.
    pub(crate) opening: Vec<Gap>,
}

impl Journal {
    /// Where journald keeps its files: volatile and persistent, system's and users'. Those of
    /// `systemd-journal-remote` are in `/var/log/journal/remote` and must be named.
    pub fn default_directories() -> [&'static Path; 2] {
        [Path::new("/run/log/journal"), Path::new("/var/log/journal")]
    }

    /// Opens files and directories. Of a directory all `*.journal` and `*.journal~` in it and in its subdirectories
    /// named by a machine id (with or without a `.namespace`) are read, as journalctl does.
    ///
    /// Each file or directory that cannot be read, is damaged or truncated is a gap; the others are read all the same.
    /// A default directory that is not there is no gap only to the caller, who knows whether it should be.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> (Self, Vec<Gap>) {
        Self::open_with(paths, Limits::default())
    }

    /// [`Journal::open`] with other limits.
    pub fn open_with<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, limits: Limits) -> (Self, Vec<Gap>) {
        let paths: Vec<_> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        let mut journal = Self { files: Vec::new(), limits, paths, opening: Vec::new() };
        let gaps = journal.refresh();
        (journal, gaps)
    }

    /// Looks at the directories and files anew: new files after a rotation, new entries in files that are being
    /// written. Entries read before stay valid. Returns all gaps, as [`Journal::open`] does.
    pub fn refresh(&mut self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut found = Vec::new();
        for path in &self.paths {
            discover(path, true, &mut found, &mut gaps);
        }
        found.sort();
        found.dedup();
        if found.len() > self.limits.files {
            // The files written last are the most likely to be asked about.
            found.sort_by_cached_key(|path| {
                std::cmp::Reverse(std::fs::metadata(path).and_then(|file| file.modified()).ok())
            });
            gaps.push(Gap::whole(&found[self.limits.files], Reason::TooManyFiles(self.limits.files)));
            found.truncate(self.limits.files);
        }
        let windows = (WINDOW_MEMORY / LARGEST_WINDOW / found.len().max(1)).clamp(2, 32);
        self.files.clear();
        for path in found {
            match JournalFile::open(&path, &self.limits, windows) {
                Ok((file, gap)) => {
                    gaps.extend(gap);
                    self.files.push(Arc::new(file));
                }
                // Rotated away between listing and opening: it is listed under its new name or was vacuumed.
                Err(Gap { reason: Reason::NotFound, .. }) if !self.paths.contains(&path) => {}
                Err(gap) => gaps.push(gap),
            }
        }
        self.opening.clone_from(&gaps);
        gaps
    }

    /// The headers of the files that were opened.
    pub fn files(&self) -> impl Iterator<Item = &FileInfo> {
        self.files.iter().map(|file| &file.info)
    }

    /// The entries that a filter lets through, found by the index.
    pub fn entries(&self, filter: &Filter) -> Entries {
        Entries::new(&self.files, filter)
    }
}

fn discover(path: &Path, top: bool, found: &mut Vec<PathBuf>, gaps: &mut Vec<Gap>) {
    if top && !path.is_dir() {
        found.push(path.to_owned());
        return;
    }
    let listing = match std::fs::read_dir(path) {
        Ok(listing) => listing,
        Err(error) => return gaps.push(Gap::io(path, &error)),
    };
    for entry in listing {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return gaps.push(Gap::io(path, &error)),
        };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let below = entry.path();
        if name.ends_with(".journal") || name.ends_with(".journal~") {
            found.push(below);
        } else if top && name.split('.').next().is_some_and(|id| id.parse::<Id128>().is_ok()) && below.is_dir() {
            discover(&below, false, found, gaps);
        }
    }
}

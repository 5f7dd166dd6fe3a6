//! Finding words in all messages of a unit's history, on all processors.

use crate::cursor::Cursor;
use crate::entries::{Bounds, read};
use crate::entry::Entry;
use crate::file::{Buffers, JournalFile};
use crate::filter::{Direction, Filter, Walk};
use crate::gap::{Gap, Gaps};
use crate::journal::Journal;
use crate::limits::Limits;
use crate::list::Reading;
use aho_corasick::AhoCorasick;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Atomic};
use std::thread;

/// Bytes of a file that one thread takes at a time.
const SHARE: u64 = 8 << 20;
/// Windows of one thread's share.
const WINDOWS: usize = 8;
/// Places of values known not to be messages, a thread and file; a power of two.
const REMEMBERED: usize = 4096;
const MESSAGE: &[u8] = b"MESSAGE=";

/// What a message must contain.
pub struct Query<'q> {
    words: Option<AhoCorasick>,
    confirm: Option<Confirm<'q>>,
}

type Confirm<'q> = Box<dyn Fn(&[u8]) -> bool + Sync + 'q>;

/// The words of a query are too many or too long.
#[derive(Debug, thiserror::Error)]
#[error("too many or too long words to search for")]
pub struct TooMuch(#[source] aho_corasick::BuildError);

impl<'q> Query<'q> {
    /// Messages with at least one of these words, upper and lower case of ASCII letters being equal.
    pub fn words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Result<Self, TooMuch> {
        // Messages are made lower-case in a buffer: a case-insensitive automaton could not skip ahead with SIMD.
        let words =
            AhoCorasick::new(words.into_iter().map(|word| word.as_ref().to_ascii_lowercase())).map_err(TooMuch)?;
        Ok(Self { words: Some(words), confirm: None })
    }

    /// Messages that `accept` says yes to, for a regular expression of the caller's.
    pub fn by(accept: impl Fn(&[u8]) -> bool + Sync + 'q) -> Self {
        Self { words: None, confirm: Some(Box::new(accept)) }
    }

    /// Of the messages found so far only those that `accept` says yes to: words first, then the costly test.
    #[must_use]
    pub fn confirmed_by(mut self, accept: impl Fn(&[u8]) -> bool + Sync + 'q) -> Self {
        self.confirm = Some(Box::new(accept));
        self
    }

    /// Whether a message is one of those asked for. `lower` is room to work in.
    pub(crate) fn accepts(&self, message: &[u8], lower: &mut Vec<u8>) -> bool {
        if let Some(words) = &self.words {
            lower.clear();
            lower.extend_from_slice(message);
            lower.make_ascii_lowercase();
            if !words.is_match(lower.as_slice()) {
                return false;
            }
        }
        self.confirm.as_ref().is_none_or(|confirm| confirm(message))
    }
}

/// One message that a search found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The entry.
    pub entry: Entry,
    /// Its message as found; `None` once [`Limits::kept_bytes`](crate::Limits::kept_bytes) are kept: see [`Hit::message`].
    kept: Option<Box<[u8]>>,
}

impl Hit {
    pub(crate) fn new(entry: Entry, message: Vec<u8>) -> Self {
        Self { entry, kept: Some(message.into()) }
    }

    /// Its `MESSAGE`, read again if the search kept too many others.
    pub fn message(&self) -> Result<Cow<'_, [u8]>, Gap> {
        match &self.kept {
            Some(message) => Ok(Cow::Borrowed(message)),
            None => self.entry.message().map(Cow::Owned),
        }
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// The messages, oldest first.
    pub hits: Vec<Hit>,
    /// Entries that matched beyond [`Limits::hits`](crate::Limits::hits): counted, not listed.
    pub not_listed: u64,
    /// Entries looked at.
    pub examined: u64,
    /// What could not be read, and hence not be searched.
    pub gaps: Vec<Gap>,
}

/// A part of one file that one thread searches.
struct Share<'f> {
    file: &'f Arc<JournalFile>,
    from: u64,
    to: u64,
}

impl Journal {
    /// Searches the messages of the entries that a filter lets through ([`Filter::direction`] and
    /// [`Filter::after`] are not looked at). Every entry of the filter is read, so cost grows with the history: for a
    /// unit [`Match::unit`](crate::Match::unit), for one start [`Start::search`](crate::Start::search).
    pub fn search(&self, filter: &Filter, query: &Query<'_>) -> Found {
        let mut hits = Vec::new();
        let (mut bytes, mut not_listed) = (0, 0);
        let mut found = self.search_each(filter, query, |mut hit| {
            if hits.len() >= self.limits.hits {
                not_listed += 1;
                return;
            }
            bytes += hit.kept.as_ref().map_or(0, |kept| kept.len() as u64);
            if bytes > self.limits.kept_bytes {
                hit.kept = None;
            }
            hits.push(hit);
        });
        found.hits = hits;
        found.not_listed += not_listed;
        found
    }

    /// The same, handing over each message as soon as its place among the others is known, oldest first: memory holds
    /// what was found in files of the same time, not in the whole history. The answer lists none.
    pub fn search_each(&self, filter: &Filter, query: &Query<'_>, mut each: impl FnMut(Hit)) -> Found {
        let filter = Filter { direction: Direction::Forward, after: None, ..filter.clone() };
        let mut found = Found::default();
        let mut gaps = Gaps::default();
        for files in self.by_time() {
            let (hits, part, met) = self.search_in(&files, &filter, query);
            found.not_listed += part.not_listed;
            found.examined += part.examined;
            gaps.extend(met.into_vec());
            hits.into_iter().for_each(&mut each);
        }
        found.gaps = gaps.into_vec();
        found
    }

    /// The files in groups, oldest first: what is in one is older than all in the next.
    fn by_time(&self) -> Vec<Vec<&Arc<JournalFile>>> {
        let mut files: Vec<&Arc<JournalFile>> = self.files.iter().collect();
        files.sort_by_key(|file| (file.info.head_realtime, file.info.tail_realtime));
        let mut groups: Vec<Vec<&Arc<JournalFile>>> = Vec::new();
        let mut reached = 0;
        for file in files {
            // Of one writer the numbers of the entries order them, whatever its clock did.
            let crosses = |other: &&Arc<JournalFile>| {
                other.info.seqnum_id == file.info.seqnum_id && other.info.tail_seqnum >= file.info.head_seqnum
            };
            match groups.last_mut() {
                Some(group) if file.info.head_realtime <= reached || group.iter().any(crosses) => group.push(file),
                _ => groups.push(vec![file]),
            }
            reached = reached.max(file.info.tail_realtime);
        }
        // A clock that was set back: then the order within a group is all that can be relied on.
        let set_back = |pair: &[Vec<&Arc<JournalFile>>]| {
            pair[0].iter().any(|older| {
                pair[1].iter().any(|newer| {
                    older.info.seqnum_id == newer.info.seqnum_id && older.info.head_seqnum > newer.info.head_seqnum
                })
            })
        };
        if groups.windows(2).any(set_back) { vec![groups.into_iter().flatten().collect()] } else { groups }
    }

    fn search_in(&self, files: &[&Arc<JournalFile>], filter: &Filter, query: &Query<'_>) -> (Vec<Hit>, Found, Gaps) {
        let shares: Vec<_> = files
            .iter()
            .flat_map(|file| {
                let starts = (0..file.end()).step_by(SHARE as usize);
                starts.map(move |from| Share { file, from, to: from.saturating_add(SHARE - 1) })
            })
            .collect();
        let threads = match self.limits.threads {
            0 => thread::available_parallelism().map_or(1, usize::from).min(8),
            threads => threads,
        };
        let next = AtomicUsize::new(0);
        let kept = Kept { bytes: AtomicU64::new(0), hits: AtomicUsize::new(0) };
        let work = || {
            let mut searcher = Searcher::new(filter, query, &kept, &self.limits);
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Atomic::Relaxed);
                let Some(share) = shares.get(index) else { break };
                let hits = searcher.share(share);
                if !hits.is_empty() {
                    done.push((index, hits));
                }
            }
            (done, searcher.found, searcher.gaps)
        };
        let mut results = Vec::new();
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(shares.len())).map(|_| scope.spawn(work)).collect();
            results.push(work());
            // A thread can only fail by a panic of the caller's own test; it goes on where it was called.
            results.extend(others.into_iter().map(|other| match other.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
        });
        let mut found = Found::default();
        let mut gaps = Gaps::default();
        let mut parts = Vec::new();
        for (done, part, met) in results {
            parts.extend(done);
            found.not_listed += part.not_listed;
            found.examined += part.examined;
            gaps.extend(met.into_vec());
        }
        parts.sort_by_key(|(index, _)| *index);
        (merge(parts.into_iter().map(|(_, hits)| hits)), found, gaps)
    }
}

/// Sorts the hits of several files, each of which is in order already, as [`Entries`](crate::Entries) does.
fn merge(parts: impl Iterator<Item = Vec<Hit>>) -> Vec<Hit> {
    let mut files: Vec<std::iter::Peekable<std::vec::IntoIter<Hit>>> = Vec::new();
    let mut last_path = None;
    let mut lists: Vec<Vec<Hit>> = Vec::new();
    for part in parts {
        let path = part.first().map(|hit| hit.entry.path().to_owned());
        match lists.last_mut() {
            Some(list) if path == last_path => list.extend(part),
            _ => lists.push(part),
        }
        last_path = path;
    }
    files.extend(lists.into_iter().map(|list| list.into_iter().peekable()));
    let mut merged: Vec<Hit> = Vec::new();
    loop {
        let mut best: Option<(usize, Cursor)> = None;
        for (i, file) in files.iter_mut().enumerate() {
            if let Some(at) = file.peek().map(|hit| hit.entry.cursor())
                && best.is_none_or(|(_, other)| at.order(&other) == Ordering::Less)
            {
                best = Some((i, at));
            }
        }
        let Some((best, at)) = best else { return merged };
        let hit = files[best].next();
        // One entry in two files, several messages in one entry.
        let again =
            merged.last().is_some_and(|last| last.entry.cursor().same_entry(&at) && last.entry.path() != path_of(&hit));
        if !again {
            merged.extend(hit);
        }
        if files[best].peek().is_none() {
            drop(files.remove(best));
        }
    }
}

fn path_of(hit: &Option<Hit>) -> &std::path::Path {
    hit.as_ref().map_or(std::path::Path::new(""), |hit| hit.entry.path())
}

/// What all threads have kept so far.
struct Kept {
    bytes: AtomicU64,
    hits: AtomicUsize,
}

/// What one thread keeps while it searches.
struct Searcher<'s> {
    filter: &'s Filter,
    query: &'s Query<'s>,
    kept: &'s Kept,
    limits: &'s Limits,
    buffers: Buffers,
    gaps: Gaps,
    found: Found,
    items: Vec<u64>,
    lower: Vec<u8>,
    /// Places of values of the current file that are not messages.
    others: Box<[u64]>,
    file: Option<Arc<JournalFile>>,
}

impl<'s> Searcher<'s> {
    fn new(filter: &'s Filter, query: &'s Query<'s>, kept: &'s Kept, limits: &'s Limits) -> Self {
        Self {
            filter,
            query,
            kept,
            limits,
            buffers: Buffers::new(WINDOWS),
            gaps: Gaps::default(),
            found: Found::default(),
            items: Vec::new(),
            lower: Vec::new(),
            others: vec![0; REMEMBERED].into(),
            file: None,
        }
    }

    fn share(&mut self, share: &Share<'_>) -> Vec<Hit> {
        let file = share.file;
        if !self.file.as_ref().is_some_and(|last| Arc::ptr_eq(last, file)) {
            self.buffers = Buffers::new(WINDOWS);
            self.others.fill(0);
            self.file = Some(Arc::clone(file));
        }
        let mut hits = Vec::new();
        let mut on = Reading { file, buffers: &mut self.buffers, gaps: &mut self.gaps };
        let Some(mut walk) = Walk::new(&mut on, &self.filter.conditions()) else { return hits };
        let Some(bounds) = Bounds::new(&mut on, self.filter) else { return hits };
        let last = share.to.min(bounds.last);
        let mut next = share.from.max(bounds.first);
        while let Some(at) = walk.at_or_after(&mut on, next).filter(|at| *at <= last) {
            next = at + 1;
            let Some(head) = read(&mut on, &walk, &bounds, at, &mut self.items) else { continue };
            self.found.examined += 1;
            for item in &self.items {
                let remembered = &mut self.others[(*item >> 3) as usize % REMEMBERED];
                if *remembered == *item {
                    continue;
                }
                let accepted = on.file.data(on.buffers, *item).and_then(|data| {
                    match on.file.payload_if(on.buffers, &data, MESSAGE)? {
                        None => {
                            *remembered = *item;
                            Ok(None)
                        }
                        Some(payload) => {
                            let message = &payload[MESSAGE.len()..];
                            Ok(self.query.accepts(message, &mut self.lower).then(|| Box::<[u8]>::from(message)))
                        }
                    }
                });
                match accepted {
                    Ok(Some(message)) => {
                        if self.kept.hits.fetch_add(1, Atomic::Relaxed) >= self.limits.hits {
                            self.found.not_listed += 1;
                            continue;
                        }
                        let entry = Entry::stored(file, &head, &self.items);
                        let total =
                            self.kept.bytes.fetch_add(message.len() as u64, Atomic::Relaxed) + message.len() as u64;
                        let kept = (total <= self.limits.kept_bytes).then_some(message);
                        hits.push(Hit { entry, kept });
                    }
                    Ok(None) => {}
                    Err(fault) => on.fault(fault),
                }
            }
        }
        hits
    }
}

//! Files of the other host, read through a session the way [`crate::file`] reads those of this one.

use super::Fault;
use super::session::{Reply, Request, Session};
use crate::file::{self, BEFORE, Content};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// So much of a long file is asked for at once.
const PIECE: usize = 4 << 20;

/// What a path is there.
pub(super) struct About {
    pub length: u64,
    pub changed_ms: Option<u64>,
    /// Device and inode.
    pub id: (u64, u64),
}

/// The question for a part of a file.
pub(super) fn part(path: &str, from: u64, limit: u64) -> Request {
    let words = [from.to_string(), limit.to_string(), path.to_owned()];
    // Behind it stands whether it could be read.
    Request::new("part", &words, usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(8))
}

/// The answer to it. Its errors have the kinds of local ones.
pub(super) fn content(reply: Reply) -> io::Result<Vec<u8>> {
    match reply.state() {
        "ok" => {}
        "absent" => return Err(io::ErrorKind::NotFound.into()),
        "denied" => return Err(io::ErrorKind::PermissionDenied.into()),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
    let mut body = reply.body;
    match body.pop() {
        Some(b'0') => Ok(body),
        // It could be opened by its mode, and was not: the kernel guards what belongs to other processes.
        _ if body.is_empty() => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Err(io::Error::other("reading it failed on the other host")),
    }
}

/// What an answer says about the file.
pub(super) fn about(reply: &Reply) -> Option<About> {
    let [_, length, written, placed, device, inode] = reply.status.as_slice() else { return None };
    let milliseconds = |text: &str| -> Option<u64> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
        seconds.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction.parse().ok()?)
    };
    Some(About {
        length: length.parse().ok()?,
        changed_ms: milliseconds(written).max(milliseconds(placed)),
        id: (device.parse().ok()?, inode.parse().ok()?),
    })
}

impl Session {
    /// As [`file::read_head`], of several files at once: each with the most bytes that are read of it.
    pub(super) fn read_heads(&mut self, files: &[(String, u64)]) -> Result<Vec<io::Result<Content>>, Fault> {
        let requests: Vec<Request> = files.iter().map(|(path, limit)| part(path, 0, limit.saturating_add(1))).collect();
        let patience = self.patience();
        let replies = self.ask(&requests, patience)?;
        Ok(files.iter().zip(replies).map(|((_, limit), reply)| head(reply, *limit)).collect())
    }

    /// As [`file::read_ends`].
    pub(super) fn read_ends(&mut self, path: &str, beginnings: &[String]) -> Result<io::Result<Content>, Fault> {
        let reply = self.ask_one(part(path, 0, 0))?;
        let about = about(&reply);
        let about = match (content(reply), about) {
            (Err(error), _) => return Ok(Err(error)),
            (Ok(_), None) => return Ok(Err(io::Error::other("its length could not be found out"))),
            (Ok(_), Some(about)) => about,
        };
        let file = FarFile { session: self, path, length: about.length, at: 0, fault: None };
        let mut file = BufReader::with_capacity(PIECE, file);
        let read = file::ends(&mut file, about.length, about.changed_ms, |file| last_beginning(file, beginnings));
        match file.into_inner().fault {
            Some(fault) => Err(fault),
            None => Ok(read),
        }
    }
}

/// What was read of a file of which at most `limit` bytes are wanted, and one more was asked for.
pub(super) fn head(reply: Reply, limit: u64) -> io::Result<Content> {
    let about = about(&reply);
    let mut bytes = content(reply)?;
    let length = about.as_ref().map_or(bytes.len() as u64, |about| about.length);
    let partial = (bytes.len() as u64 > limit).then(|| format!("the first {limit} of {length} bytes"));
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Content { bytes, changed_ms: about.and_then(|about| about.changed_ms), partial })
}

/// Where the last line begins that holds one of some texts: the other host looks, so that the file need not travel.
fn last_beginning(file: &mut BufReader<FarFile<'_>>, beginnings: &[String]) -> io::Result<Option<u64>> {
    let beginnings: Vec<&str> = beginnings.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    if beginnings.is_empty() {
        return Ok(None);
    }
    let Some(line) = file.get_mut().seek_text(&beginnings)? else { return Ok(None) };
    // A start may have said something before the line that gives it away.
    let from = line.saturating_sub(BEFORE as u64);
    let mut before = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(line - from).read_to_end(&mut before)?;
    let skipped = match from {
        0 => 0,
        _ => before.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
    };
    Ok(Some(from + skipped as u64))
}

struct FarFile<'a> {
    session: &'a mut Session,
    path: &'a str,
    length: u64,
    at: u64,
    fault: Option<Fault>,
}

impl FarFile<'_> {
    fn keep(&mut self, fault: Fault) -> io::Error {
        self.fault = Some(fault);
        io::Error::other("the connection to the other host ended")
    }

    fn seek_text(&mut self, texts: &[&str]) -> io::Result<Option<u64>> {
        let mut words = vec![self.path];
        words.extend(texts);
        let request = Request::new("seek", &words, 128);
        // The whole of it may have to be read there.
        let idle = self.session.patience() * 4;
        let mut replies = self.session.ask(&[request], idle).map_err(|fault| self.keep(fault))?;
        let reply = replies.pop().unwrap_or_default();
        let line = String::from_utf8_lossy(&reply.body).into_owned();
        Ok(line.split_once(':').and_then(|(offset, _)| offset.parse().ok()).filter(|offset| *offset < self.length))
    }
}

impl Read for FarFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What was written since is another reading's.
        let left = self.length.saturating_sub(self.at).min(buffer.len() as u64);
        if left == 0 {
            return Ok(0);
        }
        let reply = self.session.ask_one(part(self.path, self.at, left)).map_err(|fault| self.keep(fault))?;
        let bytes = content(reply)?;
        let Some(room) = buffer.get_mut(..bytes.len()) else {
            return Err(io::Error::other("more came than was asked for"));
        };
        room.copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

impl Seek for FarFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

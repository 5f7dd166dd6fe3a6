//! Another host as [`crate::systemd`] sees hosts.
//!
//! Finding the files of a unit takes a hundred small looks, each of which depends on the ones before. Over a connection
//! they are not made one by one: a look at something that is not known yet answers "nothing there" and is remembered,
//! and when all is said, everything remembered is fetched at once and it is begun again. After a few rounds, nothing is
//! new any more.

use super::agentless::FarProcess;
use super::remote_file::head;
use super::session::{Reply, Request, Session, outcome};
use super::{Fault, listing};
use crate::command::Error;
use crate::file::Content;
use crate::systemd::{self, Kind, Machine, Unit};
use ascertain_model::service::Manager;
use ascertain_unit::unit::joined;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

/// Rounds until it is known what a unit is made of; a link of links takes one each.
const ROUNDS: usize = 24;
/// Paths that are looked at for one unit.
const MOST: usize = 4000;
const LONGEST_ANSWER: usize = 8 << 20;
const MOST_LINKS: usize = 16;

/// What a command printed, or the first line of its complaint.
type Answer = Result<Vec<u8>, String>;

pub(super) struct Far<'a> {
    session: RefCell<&'a mut Session>,
    /// What was fetched, and at most how much of it.
    known: RefCell<BTreeMap<String, (u64, Reply)>>,
    /// What is to be fetched, with the most bytes that are wanted of it.
    wanted: RefCell<BTreeMap<String, u64>>,
    answers: RefCell<BTreeMap<Vec<String>, Answer>>,
    fault: RefCell<Option<Fault>>,
}

impl Session {
    /// Looks a unit up by its name, as [`systemd::find`] does.
    pub fn unit(&mut self, name: &str) -> Result<Option<Unit>, Fault> {
        self.settled(|far| systemd::find_on(far, name).ok().flatten())
    }

    /// The unit a process belongs to, as [`systemd::of_process`] finds it.
    pub fn unit_of(&mut self, process: &FarProcess) -> Result<Option<Unit>, Fault> {
        self.settled(|far| systemd::of_groups(far, &process.groups).and_then(Result::ok))
    }

    /// Does something again until it has seen everything that it looks at.
    fn settled<T>(&mut self, again: impl Fn(&Far<'_>) -> T) -> Result<T, Fault> {
        let far = Far {
            session: RefCell::new(self),
            known: RefCell::default(),
            wanted: RefCell::default(),
            answers: RefCell::default(),
            fault: RefCell::default(),
        };
        let mut done = again(&far);
        for _ in 0..ROUNDS {
            if !far.fetch()? {
                break;
            }
            done = again(&far);
        }
        match far.fault.into_inner() {
            Some(fault) => Err(fault),
            None => Ok(done),
        }
    }
}

impl Far<'_> {
    /// Fetches what is wanted; `false` if nothing is.
    fn fetch(&self) -> Result<bool, Fault> {
        let wanted = std::mem::take(&mut *self.wanted.borrow_mut());
        let mut known = self.known.borrow_mut();
        if wanted.is_empty() || known.len() > MOST {
            return Ok(false);
        }
        let requests: Vec<Request> = wanted.iter().map(|(path, limit)| tree(path, *limit)).collect();
        let mut session = self.session.borrow_mut();
        let patience = session.patience();
        let replies = session.ask(&requests, patience)?;
        known.extend(wanted.into_iter().zip(replies).map(|((path, limit), reply)| (path, (limit, reply))));
        Ok(true)
    }

    fn at(&self, path: &str, limit: u64) -> Option<Reply> {
        let known = self.known.borrow();
        let known = known.get(path);
        // Of what was looked at only to see what it is, nothing was fetched yet.
        if known.is_none_or(|(fetched, reply)| *fetched < limit && reply.state() == "ok") {
            let mut wanted = self.wanted.borrow_mut();
            let most = wanted.entry(path.to_owned()).or_default();
            *most = limit.max(*most);
            return None;
        }
        known.map(|(_, reply)| reply.clone())
    }

    fn run(&self, questions: &[Vec<String>]) -> Vec<Answer> {
        let mut answers = self.answers.borrow_mut();
        let new: Vec<&Vec<String>> = questions.iter().filter(|words| !answers.contains_key(*words)).collect();
        if !new.is_empty() {
            let requests: Vec<Request> = new
                .iter()
                .map(|words| {
                    let mut all = vec![(LONGEST_ANSWER + 1).to_string()];
                    all.extend(words.iter().cloned());
                    Request::new("run", &all, LONGEST_ANSWER + 1)
                })
                .collect();
            let mut session = self.session.borrow_mut();
            let patience = session.patience();
            match session.ask(&requests, patience) {
                Ok(replies) => {
                    for (words, reply) in new.into_iter().zip(replies) {
                        let (stderr, code) = outcome(&reply.end);
                        let answer = if code == Some(0) && reply.body.len() <= LONGEST_ANSWER {
                            Ok(reply.body)
                        } else {
                            let said = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
                            Err(said.to_owned())
                        };
                        answers.insert(words.clone(), answer);
                    }
                }
                Err(fault) => *self.fault.borrow_mut() = Some(fault),
            }
        }
        let lost = || Err("the connection was lost".to_owned());
        questions.iter().map(|words| answers.get(words).cloned().unwrap_or_else(lost)).collect()
    }
}

impl Machine for Far<'_> {
    fn ask(&self, program: &str, manager: &Manager, questions: &[&[&str]]) -> Vec<Result<Vec<u8>, Error>> {
        let failed = |said: String| Error::Failed { program: program.to_owned(), said };
        let before: Vec<String> = match manager {
            Manager::System => vec![program.to_owned()],
            Manager::User { uid, runtime, .. } if *uid == self.uid() => {
                ["env".to_owned(), format!("XDG_RUNTIME_DIR={runtime}"), program.to_owned(), "--user".to_owned()].into()
            }
            Manager::User { .. } => {
                let why = "the manager of another user is not asked with plain commands (--push does it)";
                return questions.iter().map(|_| Err(failed(why.to_owned()))).collect();
            }
        };
        let whole = |words: &&[&str]| -> Vec<String> {
            before.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect()
        };
        let questions: Vec<Vec<String>> = questions.iter().map(whole).collect();
        self.run(&questions).into_iter().map(|answer| answer.map_err(failed)).collect()
    }

    fn uid(&self) -> u32 {
        self.session.borrow().uid
    }

    fn runtime(&self, uid: u32) -> String {
        format!("/run/user/{uid}")
    }

    fn kind(&self, path: &str) -> Kind {
        let Some(reply) = self.at(path, 0) else { return Kind::Absent };
        match reply.state() {
            "link" => match listing::parse(&reply.body).into_iter().find_map(|link| link.target) {
                Some(target) => Kind::Link(target),
                None => Kind::Unreadable("where it leads may not be seen".to_owned()),
            },
            "directory" => Kind::Directory,
            "absent" => Kind::Absent,
            "denied" => Kind::Unreadable(io::Error::from(io::ErrorKind::PermissionDenied).to_string()),
            _ => Kind::Other,
        }
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Content> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            // One byte more tells that there was more.
            let Some(reply) = self.at(&path, limit.saturating_add(1)) else { break };
            if let Kind::Link(target) = self.kind(&path) {
                path = from(&path, target);
                continue;
            }
            return head(reply, limit);
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let mut path = directory.to_owned();
        for _ in 0..MOST_LINKS {
            match self.kind(&path) {
                Kind::Link(target) => path = from(&path, target),
                Kind::Directory => {
                    let body = self.at(&path, 0).map(|reply| reply.body).unwrap_or_default();
                    return String::from_utf8_lossy(&body).lines().map(listing::plain).collect();
                }
                _ => break,
            }
        }
        Vec::new()
    }

    fn processes(&self, group: &str) -> Vec<u32> {
        systemd::processes_in(group, |root| {
            let words = ["find", root, "-name", "cgroup.procs", "-exec", "cat", "{}", "+"].map(str::to_owned).to_vec();
            let text = self.run(&[words]).pop().and_then(Result::ok).unwrap_or_default();
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}

/// Where a link leads.
fn from(path: &str, target: String) -> String {
    if target.starts_with('/') { target } else { joined(path, &target) }
}

/// The question for what a path is and, of a file, its beginning.
fn tree(path: &str, limit: u64) -> Request {
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(8).max(4 << 20);
    Request::new("tree", &[limit.to_string().as_str(), path], most)
}

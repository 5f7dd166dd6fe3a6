//! `%i` and its kin, and the names of units.
//!
//! What a specifier stands for is either computed from the unit's name, fixed for the manager (`%t` is `/run` for the
//! system's), or a fact about the host that somebody must have collected. Without the fact the value is opaque.

use crate::issue::Issue;
use crate::{Kind, Text, Version};
use std::ops::Range;

/// Whose units these are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    /// PID 1.
    System,
    /// A user's own manager.
    User {
        /// The user's home directory.
        home: String,
        /// `$XDG_RUNTIME_DIR`, `/run/user/1000`.
        runtime: String,
        /// `$XDG_CONFIG_HOME`; `~/.config` where not set.
        config: Option<String>,
        /// `$XDG_DATA_HOME`; `~/.local/share` where not set.
        data: Option<String>,
    },
}

impl Manager {
    /// The option of `systemctl` that addresses it.
    pub fn option(&self) -> &'static str {
        match self {
            Manager::System => "",
            Manager::User { .. } => "--user ",
        }
    }
}

/// The name of a unit, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName {
    /// Before `@`, or before the last dot.
    pub prefix: String,
    /// After `@`: `None` without one, empty for a template.
    pub instance: Option<String>,
    /// `service`.
    pub suffix: String,
}

/// The longest name systemd accepts, with its terminator.
const LONGEST_NAME: usize = 256;

impl UnitName {
    /// Takes a name apart; `.service` is added where there is no known suffix, as `systemctl` does.
    pub fn parse(name: &str) -> Option<UnitName> {
        let known = |suffix: &str| {
            ["service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice", "scope"]
                .contains(&suffix)
        };
        let (stem, suffix) = match name.rsplit_once('.') {
            Some((stem, suffix)) if known(suffix) => (stem, suffix),
            _ => (name, "service"),
        };
        let fine = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        if stem.is_empty() || !stem.chars().all(fine) || stem.len() + suffix.len() + 1 >= LONGEST_NAME {
            return None;
        }
        let (prefix, instance) = match stem.split_once('@') {
            Some((prefix, instance)) => (prefix, Some(instance.to_string())),
            None => (stem, None),
        };
        (!prefix.is_empty()).then(|| UnitName { prefix: prefix.to_string(), instance, suffix: suffix.to_string() })
    }

    /// The whole name.
    pub fn full(&self) -> String {
        format!("{}.{}", self.stem(), self.suffix)
    }

    /// Without the suffix.
    pub fn stem(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}@{instance}", self.prefix),
            None => self.prefix.clone(),
        }
    }

    /// The name of the template it is an instance of.
    pub fn template(&self) -> Option<String> {
        self.is_instance().then(|| format!("{}@.{}", self.prefix, self.suffix))
    }

    /// `name@x.service`.
    pub fn is_instance(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| !instance.is_empty())
    }

    /// `name@.service`, which cannot run.
    pub fn is_template(&self) -> bool {
        self.instance.as_ref().is_some_and(String::is_empty)
    }
}

/// Undoes the escaping of unit names: `-` is `/`, `\x2d` is `-`.
pub fn unescape(name: &str) -> Option<String> {
    let mut out = Vec::new();
    let bytes = name.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'-' => out.push(b'/'),
            b'\\' => {
                let digits = bytes.get(at + 1..at + 4).filter(|code| code[0] == b'x')?;
                if !digits[1..].iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                out.push(u8::from_str_radix(std::str::from_utf8(&digits[1..]).ok()?, 16).ok()?);
                at += 3;
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

/// Undoes the escaping of paths in unit names: `home-me` is `/home/me`, `-` is `/`.
pub fn unescape_path(name: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    if name == "-" {
        return Some("/".to_string());
    }
    let path = unescape(name)?;
    if path.starts_with('/') || path.ends_with('/') || path.contains("//") {
        return None;
    }
    Some(format!("/{path}"))
}

/// Escapes text for use in a unit name, as `systemd-escape` does.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => out.push('-'),
            b'.' if index == 0 => out.push_str("\\x2e"),
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'.') => out.push(byte as char),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

/// What is known about the host and the manager. `None`: not collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// `%m`, `/etc/machine-id`.
    pub machine_id: Option<String>,
    /// `%b`, without dashes.
    pub boot_id: Option<String>,
    /// `%H`.
    pub host_name: Option<String>,
    /// `%q`, the pretty host name of `/etc/machine-info`.
    pub pretty_host_name: Option<String>,
    /// `%v`, `uname -r`.
    pub kernel: Option<String>,
    /// `%a`, as systemd spells it: `x86-64`, `arm64`.
    pub architecture: Option<String>,
    /// `/etc/os-release`, where it was read: `%o`, `%w`, `%W`, `%B`, `%A`, `%M`.
    pub os_release: Option<Vec<(String, String)>>,
    /// `%u`: the user the manager runs as.
    pub user: Option<String>,
    /// `%U`.
    pub uid: Option<u32>,
    /// `%g`.
    pub group: Option<String>,
    /// `%G`.
    pub gid: Option<u32>,
    /// `%h`.
    pub home: Option<String>,
    /// `%s`: the shell of the manager's user.
    pub shell: Option<String>,
    /// `$TMPDIR` of the manager, where it is set: `%T`, `%V`.
    pub tmpdir: Option<String>,
    /// `$XDG_CACHE_HOME` of a user's manager, where it is set: `%C`.
    pub cache_home: Option<String>,
    /// `$XDG_STATE_HOME` of a user's manager, where it is set: `%S` since 254.
    pub state_home: Option<String>,
}

/// All that specifiers depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The unit's name; of an alias the real one.
    pub name: UnitName,
    /// Whose unit it is.
    pub manager: Manager,
    /// Which systemd reads it.
    pub version: Version,
    /// About the host.
    pub facts: Facts,
    /// The unit file, symbolic links followed: `%y`, `%Y`.
    pub fragment: Option<String>,
    /// The unit's other names. Specifiers are resolved with the name it was first loaded by, which may be one of them.
    pub aliases: Vec<UnitName>,
}

impl Context {
    /// A context that knows nothing but the name.
    pub fn bare(name: UnitName) -> Context {
        Context {
            name,
            manager: Manager::System,
            version: Version::default(),
            facts: Facts::default(),
            fragment: None,
            aliases: Vec::new(),
        }
    }
}

enum Meaning {
    Is(String),
    /// A fact of this name is lacking.
    Lacks(&'static str),
    /// Systemd fails to resolve it.
    Fails(&'static str),
    /// No specifier in this release.
    Unknown,
}

/// Replaces the specifiers of a text. `None` where systemd cannot, and drops the value.
pub fn resolve(text: &str, context: &Context, range: Range<usize>, issues: &mut Vec<Issue>) -> Option<Text> {
    let mut out = String::new();
    let mut rest = text;
    let mut why: Option<String> = None;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else {
            out.push('%');
            break;
        };
        rest = &rest[letter.len_utf8()..];
        if letter == '%' {
            out.push('%');
            continue;
        }
        match agreed(letter, context) {
            Meaning::Is(value) => out.push_str(&value),
            // Only letters and digits can be specifiers: `100% sure` is no mistake.
            Meaning::Unknown if !letter.is_ascii_alphanumeric() => out.extend(['%', letter]),
            // A release we have not seen may know it.
            Meaning::Unknown if context.version > NEWEST_SEEN => {
                let text = format!("%{letter} may mean something in systemd {}", context.version.0);
                issues.push(Issue::new(Kind::UnknownSpecifier, range.clone(), text.clone()));
                why = Some(text);
            }
            Meaning::Unknown => {
                let version = context.version.0;
                let text =
                    format!("%{letter} is no specifier of systemd {version}, which drops this; write %% for a %");
                issues.push(Issue::new(Kind::UnknownSpecifier, range, text));
                return None;
            }
            Meaning::Lacks(fact) => {
                let text = format!("%{letter} is not known here: {fact} was not collected");
                why = Some(text.clone());
                issues.push(Issue::new(Kind::UnavailableSpecifier, range.clone(), text));
            }
            Meaning::Fails(reason) => {
                let text = format!("systemd cannot resolve %{letter}, and drops this: {reason}");
                issues.push(Issue::new(Kind::UnavailableSpecifier, range, text));
                return None;
            }
        }
    }
    out.push_str(rest);
    Some(match why {
        Some(why) => Text::opaque(text, why),
        None => Text::Known(out),
    })
}

/// The newest release whose specifiers are in the table.
const NEWEST_SEEN: Version = Version(257);

/// What a specifier means under all names of the unit.
fn agreed(letter: char, context: &Context) -> Meaning {
    let first = meaning(letter, context, &context.name);
    for name in &context.aliases {
        match (&first, meaning(letter, context, name)) {
            (Meaning::Is(one), Meaning::Is(other)) if *one != other => {
                return Meaning::Lacks("the name, of its several, by which the unit was first loaded");
            }
            _ => {}
        }
    }
    first
}

fn meaning(letter: char, context: &Context, name: &UnitName) -> Meaning {
    let facts = &context.facts;
    let since = |version: u32, meaning: Meaning| {
        if context.version >= Version(version) { meaning } else { Meaning::Unknown }
    };
    let fact = |value: &Option<String>, what: &'static str| match value {
        Some(value) => Meaning::Is(value.clone()),
        None => Meaning::Lacks(what),
    };
    let or_fails = |value: Option<String>, why: &'static str| value.map_or(Meaning::Fails(why), Meaning::Is);
    let os = |key: &str| match &facts.os_release {
        Some(pairs) => Meaning::Is(
            pairs.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap_or_default(),
        ),
        None => Meaning::Lacks("/etc/os-release"),
    };
    let last = || name.prefix.rsplit('-').next().unwrap_or(&name.prefix).to_string();
    let instance = || name.instance.clone().unwrap_or_default();
    match letter {
        'n' => Meaning::Is(name.full()),
        'N' => Meaning::Is(name.stem()),
        'p' => Meaning::Is(name.prefix.clone()),
        'P' => or_fails(unescape(&name.prefix), "the prefix is not escaped properly"),
        'j' => Meaning::Is(last()),
        'J' => or_fails(unescape(&last()), "the prefix is not escaped properly"),
        'i' => Meaning::Is(instance()),
        'I' => or_fails(unescape(&instance()), "the instance is not escaped properly"),
        'f' => match &name.instance {
            Some(instance) if !instance.is_empty() => {
                or_fails(unescape_path(instance), "the instance is not an escaped path")
            }
            _ => or_fails(unescape_path(&name.prefix), "the name is not an escaped path"),
        },
        'y' => since(250, or_fails(context.fragment.clone(), "the unit has no file")),
        'Y' => since(
            250,
            or_fails(
                context.fragment.as_ref().and_then(|path| path.rsplit_once('/')).map(|(dir, _)| dir.to_string()),
                "the unit has no file",
            ),
        ),
        't' | 'S' | 'C' | 'L' | 'E' | 'd' | 'D' => directory(letter, context, name),
        'T' => Meaning::Is(facts.tmpdir.clone().unwrap_or_else(|| "/tmp".to_string())),
        'V' => Meaning::Is(facts.tmpdir.clone().unwrap_or_else(|| "/var/tmp".to_string())),
        'm' => fact(&facts.machine_id, "the machine id"),
        'b' => fact(&facts.boot_id, "the boot id"),
        'H' => fact(&facts.host_name, "the host name"),
        'l' => match &facts.host_name {
            Some(host) => Meaning::Is(host.split('.').next().unwrap_or(host).to_string()),
            None => Meaning::Lacks("the host name"),
        },
        'q' => since(248, fact(&facts.pretty_host_name, "the pretty host name")),
        'v' => fact(&facts.kernel, "the kernel's release"),
        'a' => since(246, fact(&facts.architecture, "the architecture")),
        'o' => since(246, os("ID")),
        'w' => since(246, os("VERSION_ID")),
        'W' => since(246, os("VARIANT_ID")),
        'B' => since(246, os("BUILD_ID")),
        'A' => since(249, os("IMAGE_VERSION")),
        'M' => since(249, os("IMAGE_ID")),
        'u' => user(context, "root", facts.user.clone(), "the manager's user"),
        'U' => user(context, "0", facts.uid.map(|uid| uid.to_string()), "the manager's user id"),
        'g' => user(context, "root", facts.group.clone(), "the manager's group"),
        'G' => user(context, "0", facts.gid.map(|gid| gid.to_string()), "the manager's group id"),
        'h' => match &context.manager {
            Manager::System => Meaning::Is(facts.home.clone().unwrap_or_else(|| "/root".to_string())),
            Manager::User { home, .. } => Meaning::Is(facts.home.clone().unwrap_or_else(|| home.clone())),
        },
        's' => fact(&facts.shell, "the shell of the manager's user"),
        // Paths in the control group tree: still resolved, with a warning.
        'c' | 'r' | 'R' => Meaning::Lacks("the control group"),
        _ => Meaning::Unknown,
    }
}

fn user(context: &Context, root: &str, value: Option<String>, what: &'static str) -> Meaning {
    match (&context.manager, value) {
        (_, Some(value)) => Meaning::Is(value),
        (Manager::System, None) => Meaning::Is(root.to_string()),
        (Manager::User { .. }, None) => Meaning::Lacks(what),
    }
}

fn directory(letter: char, context: &Context, name: &UnitName) -> Meaning {
    let known = |letter: char| match letter {
        'd' => context.version >= Version(250),
        'D' => context.version >= Version(254),
        _ => true,
    };
    if !known(letter) {
        return Meaning::Unknown;
    }
    let path = match &context.manager {
        Manager::System => match letter {
            't' => "/run".to_string(),
            'S' => "/var/lib".to_string(),
            'C' => "/var/cache".to_string(),
            'L' => "/var/log".to_string(),
            'E' => "/etc".to_string(),
            'D' => "/usr/share".to_string(),
            _ => format!("/run/credentials/{}", name.full()),
        },
        Manager::User { home, runtime, config, data } => {
            let config = config.clone().unwrap_or_else(|| format!("{home}/.config"));
            let data = data.clone().unwrap_or_else(|| format!("{home}/.local/share"));
            // The state directory moved from the configuration to its own place.
            let state = if context.version >= Version(254) {
                context.facts.state_home.clone().unwrap_or_else(|| format!("{home}/.local/state"))
            } else {
                config.clone()
            };
            match letter {
                't' => runtime.clone(),
                'S' => state,
                'C' => context.facts.cache_home.clone().unwrap_or_else(|| format!("{home}/.cache")),
                'L' => format!("{state}/log"),
                'E' => config,
                'D' => data,
                _ => format!("{runtime}/credentials/{}", name.full()),
            }
        }
    };
    Meaning::Is(path)
}

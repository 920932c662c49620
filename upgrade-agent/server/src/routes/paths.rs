//! The route of a path, by the rules of the original's framework: case is ignored, a trailing slash is
//! ignored, `HEAD` is a `GET`. Knows nothing of the answers.

use axum::http::Method;
use axum::routing::MethodFilter;

use super::Route;

/// The routes, those without an id first.
pub(super) struct Paths(Vec<Path>);

struct Path {
    parts: Vec<Part>,
    route: Route,
}

enum Part {
    Word(&'static str),
    Id,
}

/// The match of a path.
pub(super) enum RouteMatch {
    /// A route, with the id in the path.
    Route(Route, String),
    /// A route with an id whose escapes are invalid.
    Garbled(String),
    Nothing,
}

impl Paths {
    pub(super) fn of(routes: impl Iterator<Item = Route>) -> Self {
        let mut all: Vec<Path> = routes.map(Path::of).collect();
        all.sort_by_key(|path| path.parts.iter().filter(|part| matches!(part, Part::Id)).count());
        Self(all)
    }

    pub(super) fn find(&self, method: &Method, path: &str) -> RouteMatch {
        let asked: Vec<&str> = parts(path).collect();
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let method = MethodFilter::try_from(method.clone()).ok();
        for path in self.0.iter().filter(|path| path.leads(&asked)) {
            // An invalid id is reported before a wrong method.
            let id = match path.id(&asked) {
                Ok(id) => id,
                Err(garbled) => return RouteMatch::Garbled(garbled.to_owned()),
            };
            if Some(path.route.0) == method {
                return RouteMatch::Route(path.route, id);
            }
        }
        RouteMatch::Nothing
    }
}

impl Path {
    fn of(route: Route) -> Self {
        let part = |part: &'static str| if part.starts_with('{') { Part::Id } else { Part::Word(part) };
        Self { parts: parts(route.1).map(part).collect(), route }
    }

    fn leads(&self, asked: &[&str]) -> bool {
        let fits = |(part, asked): (&Part, &&str)| match part {
            Part::Word(word) => word.eq_ignore_ascii_case(asked),
            Part::Id => !asked.is_empty(),
        };
        self.parts.len() == asked.len() && self.parts.iter().zip(asked).all(fits)
    }

    /// The id in the path, empty if there is none, or the part with an invalid escape.
    fn id<'a>(&self, asked: &[&'a str]) -> Result<String, &'a str> {
        let mut ids = self.parts.iter().zip(asked).filter(|(part, _)| matches!(part, Part::Id));
        ids.next().map_or_else(|| Ok(String::new()), |(_, id)| decoded(id).ok_or(*id))
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.strip_suffix('/').unwrap_or(path).split('/')
}

/// A part of a path, unescaped.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(if byte == b'%' { (digit()? * 16 + digit()?) as u8 } else { byte });
    }
    String::from_utf8(bytes).ok()
}

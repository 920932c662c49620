//! The kinds of questions, and how each is worked on: one function a kind.

use std::collections::BTreeSet;

use serde_json::json;

use super::Step;
use super::facts::Facts;
use super::read::{between, commas, least, numbers, sheet, word_after};
use crate::agent::{expression, opposite};

/// `None` for a question of another kind; else the answer, or the step before it.
type Skill = fn(&Facts) -> Option<Result<String, Step>>;

const SKILLS: [Skill; 20] = [
    arithmetic, boxes, backwards, operation, alphabet, food, coldest, program, morse, route, species, reply,
    albums, birthplace, pages, surname, medals, award, errors, fewest,
];

/// The drinks that are sold at kiosks.
const DRINKS: [&str; 8] = ["soda", "coffee", "tea", "water", "juice", "milk", "cocoa", "lemonade"];

pub(super) fn next(facts: &Facts) -> Step {
    match SKILLS.iter().find_map(|skill| skill(facts)) {
        Some(Ok(answer)) => Step::Answer(answer),
        Some(Err(step)) => step,
        None => Step::Unable("this is no kind of question that the offline model knows".to_owned()),
    }
}

fn unclear(what: &str) -> Step {
    Step::Unable(format!("{what} does not say it"))
}

/// A plain expression.
fn arithmetic(facts: &Facts) -> Option<Result<String, Step>> {
    let expression = expression(&facts.question)?;
    Some(facts.ask("calculator", json!({ "expression": expression })).map(str::to_owned))
}

/// Boxes of things at a price.
fn boxes(facts: &Facts) -> Option<Result<String, Step>> {
    let question = &facts.question;
    if !question.contains("boxes of") || !question.contains('$') {
        return None;
    }
    let factors: Vec<_> = numbers(question).iter().take(3).map(ToString::to_string).collect();
    Some(facts.ask("calculator", json!({ "expression": factors.join(" * ") })).map(str::to_owned))
}

/// A sentence from right to left.
fn backwards(facts: &Facts) -> Option<Result<String, Step>> {
    let forwards: String = facts.question.chars().rev().collect();
    let word = word_after(&forwards, "opposite of the word ")?;
    Some(opposite(word).map(str::to_owned).ok_or_else(|| unclear("the dictionary")))
}

/// The table of an operation.
fn operation(facts: &Facts) -> Option<Result<String, Step>> {
    let rows = facts.question.lines().filter(|line| line.starts_with('|') && !line.contains("---"));
    let rows: Vec<Vec<&str>> =
        rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let (head, rows) = rows.split_first()?;
    if head.first() != Some(&"*") || !facts.question.contains("commutative") {
        return None;
    }
    let product = |one: usize, other: usize| rows.get(one).and_then(|row| row.get(other + 1));
    let count = rows.len();
    let pairs = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
    let odd = pairs.filter(|(one, other)| product(*one, *other) != product(*other, *one));
    let names: BTreeSet<&str> = odd.flat_map(|(one, other)| [rows[one][0], rows[other][0]]).collect();
    Some(Ok(names.into_iter().collect::<Vec<_>>().join(", ")))
}

/// A list to be sorted.
fn alphabet(facts: &Facts) -> Option<Result<String, Step>> {
    if !facts.question.contains("in alphabetical order, as a comma separated list:") {
        return None;
    }
    let (_, list) = facts.question.split_once("list:")?;
    let mut words: Vec<_> = list.trim().trim_end_matches('.').split(',').map(str::trim).collect();
    words.sort_unstable();
    Some(Ok(words.join(", ")))
}

/// A sheet of sales, without the columns of drinks.
fn food(facts: &Facts) -> Option<Result<String, Step>> {
    if !facts.question.contains("total sales of food") {
        return None;
    }
    Some(total_of_food(facts))
}

fn total_of_food(facts: &Facts) -> Result<String, Step> {
    let rows = sheet(facts.ask("read_excel", json!({ "path": facts.file()? }))?);
    let (head, rows) = rows.split_first().ok_or_else(|| unclear("the sheet"))?;
    let is_food =
        |at: usize| head.get(at).is_some_and(|name| !DRINKS.contains(&name.to_lowercase().as_str()));
    let cells = rows.iter().flat_map(|row| row.iter().enumerate().filter(|(at, _)| is_food(*at)));
    let sales: Vec<_> = cells.map(|(_, cell)| *cell).filter(|cell| cell.parse::<f64>().is_ok()).collect();
    let total = facts.ask("calculator", json!({ "expression": sales.join(" + ") }))?;
    let total: f64 = total.parse().map_err(|_| unclear("the sum"))?;
    Ok(format!("{total:.2}"))
}

/// The row of a sheet with the lowest temperature.
fn coldest(facts: &Facts) -> Option<Result<String, Step>> {
    if !facts.question.contains("lowest temperature") {
        return None;
    }
    let found =
        facts.file().and_then(|file| facts.ask("read_excel", json!({ "path": file }))).and_then(|text| {
            let rows = sheet(text);
            let row = least(&rows, "Temperature").and_then(|row| row.first()).map(|day| (*day).to_owned());
            row.ok_or_else(|| unclear("the sheet"))
        });
    Some(found)
}

/// The last number that a program prints.
fn program(facts: &Facts) -> Option<Result<String, Step>> {
    if !facts.question.contains("output of the attached Python code") {
        return None;
    }
    let ran = facts.file().and_then(|file| facts.ask("execute_python_file", json!({ "path": file })));
    Some(ran.and_then(|text| {
        let lines = text.lines().rev().map(str::trim).filter(|line| !line.starts_with('['));
        let number = lines.into_iter().find(|line| line.parse::<f64>().is_ok());
        number.map(str::to_owned).ok_or_else(|| unclear("the output"))
    }))
}

/// A word of a recording.
fn morse(facts: &Facts) -> Option<Result<String, Step>> {
    let before = between(&facts.question, "follows the word ", " in it")?;
    let heard = facts.file().and_then(|file| {
        facts.ask("understand_audio", json!({ "path": file, "question": "Write down the message." }))
    });
    Some(heard.and_then(|text| {
        let word = word_after(text, &format!(" {before} "));
        word.map(str::to_owned).ok_or_else(|| unclear("the recording"))
    }))
}

/// A number in a picture.
fn route(facts: &Facts) -> Option<Result<String, Step>> {
    if !facts.question.contains("number of the route") {
        return None;
    }
    let seen = facts.file().and_then(|file| {
        facts.ask("analyze_image", json!({ "path": file, "question": "Which text is on the sign?" }))
    });
    Some(seen.and_then(|text| {
        let number = word_after(text, "ROUTE ");
        number.map(str::to_owned).ok_or_else(|| unclear("the image"))
    }))
}

fn video(facts: &Facts) -> Option<&str> {
    word_after(&facts.question, "In the video ").filter(|address| address.starts_with("https://"))
}

/// The scene of a video with the most species.
fn species(facts: &Facts) -> Option<Result<String, Step>> {
    let video = video(facts).filter(|_| facts.question.contains("highest number of bird species"))?;
    let question = "How many bird species are on camera in each scene?";
    let seen = facts.ask("understand_video", json!({ "video": video, "question": question }));
    Some(seen.and_then(|text| {
        let count = |line: &str| {
            let (before, _) = line.split_once(" bird species")?;
            before.split_whitespace().next_back()?.parse::<u32>().ok()
        };
        let most = text.lines().filter_map(count).max();
        most.map(|most| most.to_string()).ok_or_else(|| unclear("the video"))
    }))
}

/// The line after another in a transcript.
fn reply(facts: &Facts) -> Option<Result<String, Step>> {
    let video = video(facts)?;
    let asked = between(&facts.question, "in response to the question \"", "\"")?;
    let transcript = facts.ask("youtube_transcript", json!({ "video": video }));
    Some(transcript.and_then(|text| {
        let words = |line: &str| line.split_once("] ").map_or(line, |(_, words)| words).trim().to_owned();
        let mut lines = text.lines().map(words).skip_while(|line| *line != asked);
        let reply = lines.nth(1).map(|line| line.trim_end_matches('.').to_owned());
        reply.ok_or_else(|| unclear("the transcript"))
    }))
}

/// A list with years in an article.
fn albums(facts: &Facts) -> Option<Result<String, Step>> {
    let artist = between(&facts.question, "How many studio albums did ", " publish between")?;
    let years: Vec<f64> = numbers(&facts.question).into_iter().take(2).collect();
    let [from, to] = years[..] else { return None };
    Some(facts.ask("wikipedia", json!({ "query": artist })).and_then(|article| {
        let (_, list) = article.split_once("Studio albums").ok_or_else(|| unclear("the article"))?;
        let lines = list.lines().skip(1).take_while(|line| !line.starts_with(['#', '[']));
        let year = |line: &str| numbers(line.rsplit('(').next()?).first().copied();
        let count = lines.filter_map(year).filter(|year| (from..=to).contains(year)).count();
        Ok(count.to_string())
    }))
}

/// When the birthplace of a person was founded. The person is in the question, or in its file.
fn birthplace(facts: &Facts) -> Option<Result<String, Step>> {
    if !facts.question.contains("In which year was the birthplace of") {
        return None;
    }
    Some(founded(facts))
}

fn founded(facts: &Facts) -> Result<String, Step> {
    let person = match between(&facts.question, "birthplace of the composer ", " founded") {
        Some(person) => person.to_owned(),
        None => {
            let text = facts.ask("read_file", json!({ "path": facts.file()? }))?;
            let named =
                text.split_once("the composer ").map(|(_, rest)| rest.lines().next().unwrap_or_default());
            named.filter(|name| !name.trim().is_empty()).ok_or_else(|| unclear("the file"))?.trim().to_owned()
        }
    };
    let article = facts.ask("wikipedia", json!({ "query": person }))?;
    let place = word_after(article, "born in ").ok_or_else(|| unclear("the article"))?;
    let article = facts.ask("wikipedia", json!({ "query": place }))?;
    word_after(article, "founded in ").map(str::to_owned).ok_or_else(|| unclear("the article"))
}

/// The pages of a paper.
fn pages(facts: &Facts) -> Option<Result<String, Step>> {
    let title = between(&facts.question, "arXiv paper \"", "\"")?;
    Some(facts.ask("arxiv_search", json!({ "query": title })).and_then(|text| {
        let paper = text.split("\n\n").find(|paper| paper.lines().next() == Some(title));
        let comment = paper.and_then(|paper| between(paper, "comment: ", " pages"));
        comment.map(str::to_owned).ok_or_else(|| unclear("the archive"))
    }))
}

/// A name on a page of the web.
fn surname(facts: &Facts) -> Option<Result<String, Step>> {
    let role = between(&facts.question, "surname of the person who was the ", "?")?;
    let (role, year) = role.rsplit_once(" in ")?;
    let found = facts.ask("duckduckgo_search", json!({ "query": format!("{role} {year}") }));
    Some(found.and_then(|text| {
        let line = text.lines().find(|line| line.contains(year) && line.contains(role));
        let name = line.and_then(|line| line.split_once(&format!("{role} was "))).map(|(_, rest)| rest);
        let words = name.map(|name| name.split([',', '.']).next().unwrap_or_default().split_whitespace());
        words.and_then(Iterator::last).map(str::to_owned).ok_or_else(|| unclear("the web"))
    }))
}

/// A count on a page of the web.
fn medals(facts: &Facts) -> Option<Result<String, Step>> {
    let country = between(&facts.question, "how many medals did ", " win at")?;
    let games = between(&facts.question, " win at the ", "?")?;
    let query = json!({ "query": format!("{country} medals {games}") });
    let tool = if facts.offers("tavily_search") { "tavily_search" } else { "duckduckgo_search" };
    Some(facts.ask(tool, query).and_then(|text| {
        let line =
            text.lines().find(|line| line.contains(&format!("At the {games}")) && line.contains(country));
        let count = line.and_then(|line| word_after(line, &format!("{country} won ")));
        count.map(str::to_owned).ok_or_else(|| unclear("the web"))
    }))
}

/// A number in a report.
fn award(facts: &Facts) -> Option<Result<String, Step>> {
    let person = between(&facts.question, "award number was the work of ", " supported")?;
    let text = facts.file().and_then(|file| facts.ask("read_file", json!({ "path": file })));
    Some(text.and_then(|text| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let after = line.split_once(&format!("The work of {person} ")).map(|(_, rest)| rest);
        let number = after.and_then(|rest| word_after(rest, "award number "));
        number.map(str::to_owned).ok_or_else(|| unclear("the report"))
    }))
}

/// Lines of a log, whose path is looked up first.
fn errors(facts: &Facts) -> Option<Result<String, Step>> {
    let module = between(&facts.question, "errors of the module ", "?")?;
    let lines = facts.ask("list_files", json!({})).and_then(|files| {
        let wanted = facts.file()?;
        let path = files.lines().filter_map(|line| line.split(" (").next()).find(|path| *path == wanted);
        facts.ask("read_file", json!({ "path": path.ok_or_else(|| unclear("the list of files"))? }))
    });
    Some(lines.map(|log| {
        log.lines().filter(|line| line.contains(&format!(" ERROR {module} "))).count().to_string()
    }))
}

/// The least number of a table that is downloaded.
fn fewest(facts: &Facts) -> Option<Result<String, Step>> {
    let address = between(&facts.question, "Download ", " from the server")?;
    let year = between(&facts.question, "fewest passengers in ", "?")?;
    let table = facts.ask("download_file", json!({ "url": address })).and_then(|said| {
        let path = between(said, "`", "`").ok_or_else(|| unclear("the download"))?;
        facts.ask("read_file", json!({ "path": path }))
    });
    Some(table.and_then(|text| {
        let rows = commas(text);
        let row = least(&rows, &format!("passengers_{year}")).and_then(|row| row.first());
        row.map(|code| (*code).to_owned()).ok_or_else(|| unclear("the table"))
    }))
}

//! The tool `youtube_transcript`.
//!
//! A video's page holds a key of YouTube's own player interface; asked with it, the interface names the
//! tracks of captions; and a track is a small XML document. None of it is documented by YouTube, so it may
//! change.

use agentgraph::CallContext;
use agentgraph_llm::{ToolError, tool};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;

use super::desk::Desk;
use super::feed;
use super::readers::view;
use super::search::{below, failed, part, read, with};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Track {
    base_url: String,
    #[serde(default)]
    language_code: String,
    /// `asr` for captions that a machine wrote.
    #[serde(default)]
    kind: String,
}

/// Gets the transcript of a YouTube video: what is said in it, line by line, each with its time.
#[tool]
pub(super) async fn youtube_transcript(
    desk: CallContext<Desk>,
    /// The address of the video, or its id.
    video: String,
    /// The code of the language.
    #[default("en".to_owned())]
    language: String,
    /// The first character to show, counted from 0, for long transcripts.
    #[default(0)]
    start: usize,
    /// A word or phrase: the places that have it are shown in place of the text.
    find: Option<String>,
) -> Result<String, ToolError> {
    let id = video_id(&video)
        .ok_or_else(|| failed(format!("`{video}` is neither a YouTube address nor an id")))?;
    let (http, base) = (&desk.services.http, &desk.services.addresses.youtube);
    let page = below(base, "watch")?;
    let html = http.get_text(&with(&page, &[("v", &id)])).await.map_err(failed)?;
    let key = text_between(&html, "\"INNERTUBE_API_KEY\":\"", "\"");
    let key =
        key.ok_or_else(|| failed("the page of the video has another form, or the video does not exist"))?;
    let url = below(base, "youtubei/v1/player")?;
    let client = json!({ "client": { "clientName": "ANDROID", "clientVersion": "20.10.38" } });
    let url = with(&url, &[("key", key)]);
    let request = http.post(&url, &json!({ "context": client, "videoId": id }));
    let player = http.text(&url, request).await.map_err(failed)?;
    let tracks = part(&read(&player)?, "/captions/playerCaptionsTracklistRenderer/captionTracks")?;
    let tracks: Vec<Track> = tracks.unwrap_or_default();
    let track = best(&tracks, &language).ok_or_else(|| failed("the video has no transcript"))?;
    let url = base.join(&track.base_url).map_err(failed)?;
    // The answer of a service must not lead anywhere else.
    if url.origin() != base.origin() {
        return Err(failed("the transcript is on another server"));
    }
    let lines = feed::transcript(&http.get_text(&url).await.map_err(failed)?).map_err(failed)?;
    if lines.is_empty() {
        return Err(failed("the transcript is empty"));
    }
    let language = if track.language_code.is_empty() { language } else { track.language_code.clone() };
    Ok(format!("[transcript in {language}]\n{}", view(&lines.join("\n"), start, find.as_deref())))
}

/// The track of the language that a person wrote, else that of a machine, else the first.
fn best<'t>(tracks: &'t [Track], language: &str) -> Option<&'t Track> {
    let fits = |track: &&Track| track.language_code.split('-').next() == language.split('-').next();
    let by_person = tracks.iter().filter(fits).find(|track| track.kind != "asr");
    by_person.or_else(|| tracks.iter().find(fits)).or(tracks.first())
}

fn text_between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split(after).next()
}

/// The id of a video: of an address of YouTube, or an id itself.
pub(super) fn video_id(video: &str) -> Option<String> {
    let video = video.trim();
    let is_id = |id: &str| {
        id.len() == 11 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let id = match Url::parse(video) {
        Err(_) => video.to_owned(),
        Ok(url) => {
            let host = url.host_str()?;
            let host = host.strip_prefix("www.").or(host.strip_prefix("m.")).unwrap_or(host);
            let mut path = url.path_segments()?;
            match host {
                "youtu.be" => path.next()?.to_owned(),
                "youtube.com" => match path.next()? {
                    "watch" => url.query_pairs().find(|(name, _)| name == "v")?.1.into_owned(),
                    "embed" | "shorts" | "live" | "v" => path.next()?.to_owned(),
                    _ => return None,
                },
                _ => return None,
            }
        }
    };
    is_id(&id).then_some(id)
}

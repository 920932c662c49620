//! The words of `#[tool(..)]`.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, LitStr, Result, Token};

use crate::mistakes::Mistakes;
use crate::words::{unknown, value};

const KNOWN: &[&str] = &["name", "description", "strict"];

#[derive(Default)]
pub(super) struct Settings {
    pub(super) name: Option<LitStr>,
    pub(super) description: Option<LitStr>,
    pub(super) strict: bool,
}

impl Settings {
    pub(super) fn read(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut settings = Settings::default();
        let read = |input: ParseStream| settings.read_words(input);
        if let Err(error) = read.parse2(tokens) {
            mistakes.add(error);
        }
        settings
    }

    fn read_words(&mut self, input: ParseStream) -> Result<()> {
        let mut read = Vec::new();
        while !input.is_empty() {
            let Ok(word) = input.call(Ident::parse_any) else {
                return Err(input.error("`#[tool(..)]` takes words: `name`, `description`, `strict`"));
            };
            if read.contains(&word) {
                return Err(Error::new(word.span(), format!("`{word}` is set twice")));
            }
            self.read_word(&word, input)?;
            read.push(word);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }

    fn read_word(&mut self, word: &Ident, input: ParseStream) -> Result<()> {
        match &*word.to_string() {
            "name" => self.name = Some(value(input, word, "name = \"get_weather\"")?),
            "description" => self.description = Some(value(input, word, "description = \"..\"")?),
            "strict" if input.is_empty() || input.peek(Token![,]) => self.strict = true,
            "strict" => return Err(input.error("`strict` takes no value")),
            _ => return Err(unknown(word, KNOWN)),
        }
        Ok(())
    }
}

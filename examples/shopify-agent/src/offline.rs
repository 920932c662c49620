//! A chat model without a network: rules for the sentences of a purchase.
//!
//! It reads the same prompts as any other model, and knows nothing else: ids come from the conversation and
//! from the tools that were used. A sentence that it does not know is answered with those that it does;
//! nothing is guessed.

mod sentence;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{ModelInfo, StopReason};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::wire::{Speaker, Spoken};
use sentence::{Item, Sentence};

/// The model.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineModel;

#[async_trait]
impl ChatModel for OfflineModel {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("offline", "rules")
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        let prompt = Prompt::read(request.system.as_deref().unwrap_or_default());
        let answer = prompt.answer().to_string();
        Ok(ChatStream::from_response(ChatResponse::new(Message::assistant(answer), StopReason::EndTurn)))
    }
}

/// A call that the model wants: a tool and its arguments.
type Call = (&'static str, Value);

/// A variant that the conversation or a tool has named: the titles of product and variant, and both ids.
type Known = (String, String, u64, u64);

#[derive(Debug, Deserialize)]
struct Used {
    tool: String,
    #[serde(default)]
    input: Value,
    output: Value,
}

/// What a prompt says.
struct Prompt<'a> {
    task: &'a str,
    said: Vec<Spoken>,
    uses: Vec<Used>,
    last: Option<Used>,
}

impl<'a> Prompt<'a> {
    fn read(system: &'a str) -> Self {
        let section = |title: &str| {
            let heading = format!("# {title}");
            let lines = system.lines().skip_while(move |line| *line != heading).skip(1);
            lines.take_while(|line| !line.starts_with("# ")).filter(|line| line.starts_with('{'))
        };
        Prompt {
            task: system.lines().find_map(|line| line.strip_prefix("# Task: ")).unwrap_or_default(),
            said: section("Conversation").flat_map(serde_json::from_str).collect(),
            uses: section("Tools used in this turn").flat_map(serde_json::from_str).collect(),
            last: section("What the tool gave").find_map(|line| serde_json::from_str(line).ok()),
        }
    }

    fn answer(&self) -> Value {
        match (self.task, self.next()) {
            ("Routing", Some(_)) => json!({ "reason": "a tool is needed", "next-action": "call-tool" }),
            ("Routing", None) => json!({ "reason": "all is done", "next-action": "respond-to-customer" }),
            ("TaskDescriptionResponse", _) => json!({ "response": self.waiting() }),
            ("ChooseTool", next) => json!({ "tool": next.map_or("", |(tool, _)| tool) }),
            ("IdentifyToolParams", next) => {
                json!({ "parameters": next.map_or(json!({}), |(_, input)| input) })
            }
            ("ConvertNaturalLanguage", _) => {
                json!({ "description": self.last.as_ref().map_or("".into(), describe) })
            }
            _ => json!({ "response": self.response() }),
        }
    }

    /// The customer's last words, if they are the last message. A click is in words that are not known.
    fn sentence(&self) -> Sentence {
        match self.said.last().filter(|last| last.role == Speaker::User) {
            Some(last) => Sentence::read(&last.content),
            None => Sentence::Greeting,
        }
    }

    /// The next call for the customer's words, after those that were made.
    fn next(&self) -> Option<Call> {
        let heard = self.said.iter().rfind(|said| said.role == Speaker::Assistant);
        let was_asked = heard.is_some_and(|heard| heard.content.contains("place the order"));
        let call = match self.sentence() {
            Sentence::List(search) => ("get_products", search.map_or(json!({}), |s| json!({ "search": s }))),
            Sentence::Details(name) => match self.variants_of(&name).first() {
                Some(known) => ("get_product_details", json!({ "product_id": known.2 })),
                None => ("get_products", json!({ "search": name })),
            },
            Sentence::Add(items) => return self.next_item(&items, "add_item_to_cart"),
            Sentence::Remove(items) => return self.next_item(&items, "delete_item_from_cart"),
            Sentence::Cart => ("get_cart_summary", json!({})),
            Sentence::Order => ("submit_cart_for_order", json!({})),
            Sentence::Yes if was_asked => ("submit_cart_for_order", json!({})),
            Sentence::Status => ("get_order_status", json!({})),
            _ => return None,
        };
        self.uses.iter().all(|used| used.tool != call.0).then_some(call)
    }

    /// The call for the first item that has none. An item whose variant is not known is looked for once.
    fn next_item(&self, items: &[Item], tool: &'static str) -> Option<Call> {
        let call = |item: &Item| match self.variants_of(&item.name).as_slice() {
            [known] => {
                let mut input = json!({ "variant_id": known.3 });
                if let Some(quantity) = item.quantity {
                    input["quantity"] = json!(quantity);
                }
                Some((tool, input))
            }
            [] => Some(("get_products", json!({ "search": item.name }))),
            // Which of them is for the customer to say.
            _ => None,
        };
        let is_new =
            |(tool, input): &Call| !self.uses.iter().any(|used| used.tool == *tool && used.input == *input);
        items.iter().filter_map(call).find(is_new)
    }

    /// The variants that a name means: of the products that have all its words, and of those whose titles
    /// have the fewest others; a size in the name chooses among them.
    fn variants_of(&self, name: &str) -> Vec<Known> {
        let words = sentence::words(name);
        let mut known = self.known();
        known.retain(|known| {
            let has = sentence::words(&format!("{} {}", known.0, known.1));
            !words.is_empty() && words.iter().all(|word| has.contains(word))
        });
        let others = |known: &Known| sentence::words(&known.0).iter().filter(|w| !words.contains(w)).count();
        let fewest = known.iter().map(others).min();
        known.retain(|known| Some(others(known)) == fewest);
        known
    }

    /// All variants that the conversation or a tool of this turn has named, each once.
    fn known(&self) -> Vec<Known> {
        let told = self.said.iter().filter(|said| said.role == Speaker::Assistant);
        let told = told.map(|said| said.content.clone());
        let mut unique: Vec<Known> = Vec::new();
        for one in told.chain(self.uses.iter().map(describe)).flat_map(|text| read_variants(&text)) {
            if unique.iter().all(|other| other.3 != one.3) {
                unique.push(one);
            }
        }
        unique
    }

    fn waiting(&self) -> &'static str {
        match self.sentence() {
            Sentence::Add(_) => "Let me add those to your order quick",
            Sentence::List(_) => "One sec I'll check our options today",
            _ => "One sec, let me look",
        }
    }

    fn response(&self) -> String {
        let failure = self.uses.iter().rev().find_map(|used| match &used.output {
            Value::String(why) => Some(why.clone()),
            output => Some(output["notes"].as_array()?.iter().map(text).collect::<Vec<_>>().join(" ")),
        });
        if let Some(failure) = failure {
            return spoken_failure(&failure);
        }
        if let Sentence::Add(items) | Sentence::Remove(items) = self.sentence()
            && let Some(question) = items.iter().find_map(|item| self.which(item))
        {
            return question;
        }
        let Some(last) = self.uses.last() else { return self.without_tools() };
        let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        match last.tool.as_str() {
            "get_products" if is_empty(&last.output["products"]) => {
                "I found nothing like that. Shall I show you everything we have?"
            }
            "get_products" => "Any of these look good to you?",
            "get_product_details" => "Would you like some?",
            "get_cart_summary" | "delete_item_from_cart"
                if is_empty(&last.output["cart_summary"]["line_items"]) =>
            {
                "Your cart is empty. What would you like?"
            }
            "add_item_to_cart" | "delete_item_from_cart" => "Anything else today?",
            "get_cart_summary" => "Here is your cart. Say when I should place the order.",
            _ => text(&last.output["message"]),
        }
        .to_owned()
    }

    /// The question for an item that no single variant is meant by.
    fn which(&self, item: &Item) -> Option<String> {
        let variants = self.variants_of(&item.name);
        let names: Vec<_> = variants.iter().map(|one| format!("{} ({})", one.0, one.1)).collect();
        match names.len() {
            0 => Some(format!("I could not find {}. Shall I show you everything we have?", item.name)),
            1 => None,
            _ => Some(format!("Which do you mean: {}?", names.join(" or "))),
        }
    }

    fn without_tools(&self) -> String {
        match self.sentence() {
            Sentence::Greeting => "Hello! What would you like to eat today?".to_owned(),
            Sentence::No => "Thank you! I am here when you need me.".to_owned(),
            Sentence::Yes => "What would you like?".to_owned(),
            _ => format!("I am the offline model, and understand only: {}.", sentence::FORMS),
        }
    }
}

/// A note or failure, said to the customer.
fn spoken_failure(why: &str) -> String {
    let Some((before, total)) = why.split_once("ask the customer to confirm the order of this cart for ")
    else {
        return format!("Sorry: {why}");
    };
    let changed = before.trim().trim_end_matches("Nothing is ordered yet:");
    format!("{changed}Shall I place the order for {}?", total.trim_end_matches('.'))
}

/// What a tool gave, in words that [`read_variants`] reads again from the history.
fn describe(used: &Used) -> String {
    let output = &used.output;
    if let Some(why) = output.as_str() {
        return format!("It failed: {why}");
    }
    if let Some(products) = output["products"].as_array().filter(|products| !products.is_empty()) {
        let variants = products.iter().flat_map(|product| {
            let variants = product["variants"].as_array().into_iter().flatten();
            variants.map(move |variant| {
                let names = json!([product["title"], variant["title"]]);
                let (product, id, price) =
                    (&product["product_id"], &variant["variant_id"], text(&variant["price"]));
                format!("{names} is product {product} variant {id} at ${price}")
            })
        });
        return format!("Found: {}", variants.collect::<Vec<_>>().join("; "));
    }
    if let Some(lines) = output["cart_summary"]["line_items"].as_array() {
        let lines: Vec<_> =
            lines.iter().map(|line| format!("{} of {}", line["quantity"], text(&line["name"]))).collect();
        let lines = if lines.is_empty() { "nothing".to_owned() } else { lines.join(", ") };
        return format!(
            "The cart has {lines}; its total is ${}",
            text(&output["cart_summary"]["total_price"])
        );
    }
    output["message"].as_str().unwrap_or("It found nothing").to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Reads the variants of a description: `["Title","Size"] is product 1 variant 2`.
fn read_variants(description: &str) -> Vec<Known> {
    let pieces = description.match_indices("[\"").filter_map(|(at, _)| {
        let (names, rest) = description[at..].split_once("] is product ")?;
        let [title, variant_title]: [String; 2] = serde_json::from_str(&format!("{names}]")).ok()?;
        let mut numbers = rest.split_whitespace();
        Some((title, variant_title, numbers.next()?.parse().ok()?, numbers.nth(1)?.parse().ok()?))
    });
    pieces.collect()
}

//! A chat model without a network: rules for the sentences of a purchase.
//!
//! It reads the same prompts as any other model, and knows nothing else: ids come from the conversation and from
//! the tools that were used. A sentence that it does not know is answered with those that it does; nothing is
//! guessed.

mod sentence;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{ModelInfo, StopReason};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

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

/// A variant that the conversation or a tool has named.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    title: String,
    variant_title: String,
    product: u64,
    variant: u64,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: String,
    content: String,
}

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
    said: Vec<Said>,
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
            said: section("Conversation").filter_map(|line| serde_json::from_str(line).ok()).collect(),
            uses: section("Tools used in this turn")
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
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
                json!({ "parameters": next.map_or_else(|| json!({}), |(_, input)| input) })
            }
            ("ConvertNaturalLanguage", _) => {
                json!({ "description": self.last.as_ref().map(describe).unwrap_or_default() })
            }
            _ => json!({ "response": self.response() }),
        }
    }

    /// The customer's last words, if they are the last message; a click is none.
    fn sentence(&self) -> Sentence {
        match self.said.last().filter(|last| last.role == "user") {
            Some(last) if last.content.starts_with("(The customer clicks: ") => Sentence::Clicked,
            Some(last) => Sentence::read(&last.content),
            None => Sentence::Greeting,
        }
    }

    fn was_asked_to_order(&self) -> bool {
        let asked = self.said.iter().rev().find(|said| said.role == "assistant");
        asked.is_some_and(|asked| asked.content.contains("place the order"))
    }

    /// The next call for the customer's words, after those that were made.
    fn next(&self) -> Option<Call> {
        let call = match self.sentence() {
            Sentence::List(search) => ("get_products", search.map_or(json!({}), |s| json!({ "search": s }))),
            Sentence::Details(name) => match self.variants_of(&name).first() {
                Some(known) => ("get_product_details", json!({ "product_id": known.product })),
                None => ("get_products", json!({ "search": name })),
            },
            Sentence::Add(items) => return self.next_item(&items, "add_item_to_cart"),
            Sentence::Remove(items) => return self.next_item(&items, "delete_item_from_cart"),
            Sentence::Cart => ("get_cart_summary", json!({})),
            Sentence::Order => ("submit_cart_for_order", json!({})),
            Sentence::Yes if self.was_asked_to_order() => ("submit_cart_for_order", json!({})),
            Sentence::Status => ("get_order_status", json!({})),
            _ => return None,
        };
        self.uses.iter().all(|used| used.tool != call.0).then_some(call)
    }

    /// The call for the first item that has none. An item whose variant is not known is looked for once.
    fn next_item(&self, items: &[Item], tool: &'static str) -> Option<Call> {
        let call = |item: &Item| match self.variants_of(&item.name).as_slice() {
            [known] => {
                let mut input = json!({ "variant_id": known.variant });
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

    /// The variants that a name means: of the products that have all its words, and of those whose titles have
    /// the fewest others; a size in the name chooses among them.
    fn variants_of(&self, name: &str) -> Vec<Known> {
        let words = sentence::words(name);
        let mut known = self.known();
        known.retain(|known| {
            let has = sentence::words(&format!("{} {}", known.title, known.variant_title));
            !words.is_empty() && words.iter().all(|word| has.contains(word))
        });
        let others =
            |known: &Known| sentence::words(&known.title).iter().filter(|w| !words.contains(w)).count();
        let fewest = known.iter().map(others).min();
        known.retain(|known| Some(others(known)) == fewest);
        known
    }

    /// All variants that the conversation or a tool of this turn has named, each once.
    fn known(&self) -> Vec<Known> {
        let told = self.said.iter().filter(|said| said.role == "assistant").map(|said| said.content.clone());
        let mut unique: Vec<Known> = Vec::new();
        for one in told.chain(self.uses.iter().map(describe)).flat_map(|text| read_variants(&text)) {
            if unique.iter().all(|other| other.variant != one.variant) {
                unique.push(one);
            }
        }
        unique
    }

    fn waiting(&self) -> &'static str {
        match self.sentence() {
            Sentence::Add(_) => "Let me add those to your order quick",
            Sentence::List(_) => "One sec I'll check our options today",
            Sentence::Order | Sentence::Yes => "One sec, about your order",
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
        let [first, rest @ ..] = variants.as_slice() else {
            return Some(format!("I could not find {}. Shall I show you everything we have?", item.name));
        };
        if rest.iter().all(|other| other.product == first.product) {
            let sizes: Vec<_> = variants.iter().map(|known| known.variant_title.to_lowercase()).collect();
            return (!rest.is_empty())
                .then(|| format!("Which size of {}: {}?", first.title, sizes.join(" or ")));
        }
        let mut titles: Vec<_> = variants.iter().map(|known| known.title.as_str()).collect();
        titles.dedup();
        Some(format!("Which do you mean: {}?", titles.join(" or ")))
    }

    fn without_tools(&self) -> String {
        match self.sentence() {
            Sentence::Greeting => "Hello! What would you like to eat today?".to_owned(),
            Sentence::Thanks => "You're welcome! Anything else today?".to_owned(),
            Sentence::No => "All right. I am here when you need me.".to_owned(),
            Sentence::Yes => "What would you like?".to_owned(),
            _ => format!("I am the offline model, and understand only: {}.", sentence::FORMS),
        }
    }
}

/// The notes and failures of tools, said to the customer.
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
    let one = [output.clone()];
    let products = output["products"]
        .as_array()
        .map_or(if output["variants"].is_array() { &one[..] } else { &[] }, |p| p);
    let variants = products.iter().flat_map(|product| {
        let variants = product["variants"].as_array().into_iter().flatten();
        variants.map(move |variant| {
            let names = json!([product["title"], variant["title"]]);
            let (product, id, price) =
                (&product["product_id"], &variant["variant_id"], text(&variant["price"]));
            format!("{names} is product {product} variant {id} at ${price}")
        })
    });
    if !products.is_empty() {
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
        let product = numbers.next()?.parse().ok()?;
        let variant = numbers.nth(1)?.parse().ok()?;
        Some(Known { title, variant_title, product, variant })
    });
    pieces.collect()
}

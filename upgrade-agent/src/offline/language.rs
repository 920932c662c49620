//! Detects messages in German, Spanish or French by their function words.

use super::lexicon;
use super::text::{Text, Word};

/// Words that do not occur in English messages.
const STRONG: &str = "ist nicht bitte danke lösche löschen löscht erstelle erstellen zeige zeigen welche welcher gibt experimente alle \
    starte beende ändere ändern brauche möchte ich wir nein ja für qué cuál cuáles hay experimento \
    experimentos crear crea eliminar elimina borrar borra mostrar muestra listar quiero gracias hola sí cómo expérience \
    expériences créer crée supprimer supprime afficher affiche bonjour merci oui quelles quels veux";
/// Words that mostly occur between those.
const WEAK: &str = "der das und ein eine einen wie mit liste von zu el los las una un por para del todos todas le la les \
    des est je et";

/// Whether the message, without names and quotes, is in another language.
pub(super) fn is_other(text: &Text) -> bool {
    let own = text.words.iter().filter(|word| !word.quoted && !word.is_capital());
    let mut strong = 0;
    let mut weak = 0;
    let mut english = 0;
    for word in own {
        if is_of(STRONG, word) {
            strong += 1;
        } else if is_of(WEAK, word) {
            weak += 1;
        } else if lexicon::is_function(word) || lexicon::is_exact(word) {
            english += 1;
        }
    }
    strong > 0 && strong + weak >= english
}

fn is_of(list: &str, word: &Word) -> bool {
    list.split_whitespace().any(|known| known == word.low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn german_spanish_and_french_messages_are_detected() {
        for message in [
            "Was ist A/B-Testing?",
            "Erstelle ein Experiment namens Hallo",
            "liste alle Experimente",
            "nein",
            "¿Qué experimentos hay?",
            "crear un experimento",
            "supprime l'expérience Hints",
            "Lösche Hints bitte",
        ] {
            assert!(is_other(&Text::read(message)), "{message}");
        }
    }

    #[test]
    fn english_messages_with_foreign_names_count_as_english() {
        for message in [
            "create an experiment called Gracias",
            "delete \"nicht\"",
            "start the experiment für alle now",
            "tell me about Ja",
            "list the experiments",
            "50/50",
            "",
        ] {
            assert!(!is_other(&Text::read(message)), "{message}");
        }
    }
}

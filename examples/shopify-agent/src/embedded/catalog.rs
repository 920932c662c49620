//! The products of the embedded shop, and their pictures.

use crate::money::Money;

/// The kinds of pictures.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Wings,
    Pizza,
    Drink,
    Side,
    Sweet,
}

/// A product: title, description, shape and colour of its picture, variants with price and stock.
pub(super) struct Entry(
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) Shape,
    pub(super) u16,
    pub(super) &'static [(&'static str, i64, i64)],
);

use Shape::{Drink, Pizza, Side, Sweet, Wings};

const ONE: &str = "Default Title";

/// In the order of their ids.
pub(super) const PRODUCTS: [Entry; 24] = [
    Entry(
        "Lemon Garlic Wings",
        "Chicken wings in a bright lemon and garlic sauce. Priced by the wing.",
        Wings,
        52,
        &[(ONE, 125, 400)],
    ),
    Entry(
        "Hot Buffalo Wings",
        "Chicken wings in a hot buffalo sauce. Priced by the wing.",
        Wings,
        14,
        &[(ONE, 130, 400)],
    ),
    Entry(
        "Honey Mustard Wings",
        "Chicken wings in a mild honey mustard sauce. Priced by the wing.",
        Wings,
        40,
        &[(ONE, 125, 300)],
    ),
    Entry(
        "Smoky Barbecue Wings",
        "Chicken wings in a smoky barbecue sauce. Priced by the wing.",
        Wings,
        6,
        &[(ONE, 125, 8)],
    ),
    Entry(
        "Trial and Error Wings",
        "Chicken wings in this week's experiment of a sauce. Priced by the wing.",
        Wings,
        300,
        &[(ONE, 99, 60)],
    ),
    Entry(
        "Margherita Pizza",
        "Tomato, mozzarella and basil.",
        Pizza,
        8,
        &[("Small", 899, 40), ("Medium", 1199, 40), ("Large", 1499, 40)],
    ),
    Entry(
        "Pepperoni Pizza",
        "Tomato, mozzarella and pepperoni.",
        Pizza,
        2,
        &[("Small", 999, 40), ("Medium", 1299, 40), ("Large", 1599, 40)],
    ),
    Entry(
        "Brooklyn Style Pizza",
        "A thin crust that folds, with pepperoni.",
        Pizza,
        20,
        &[("Large", 1699, 25), ("Extra Large", 1999, 25)],
    ),
    Entry(
        "Four Cheese Pizza",
        "Mozzarella, gorgonzola, parmesan and fontina.",
        Pizza,
        46,
        &[("Small", 1049, 30), ("Medium", 1349, 30), ("Large", 1649, 30)],
    ),
    Entry(
        "Garden Pizza",
        "Peppers, mushrooms, olives and onions.",
        Pizza,
        110,
        &[("Small", 949, 30), ("Medium", 1249, 30), ("Large", 1549, 30)],
    ),
    Entry(
        "Lemonade",
        "Pressed lemons, water and a little sugar.",
        Drink,
        54,
        &[("Small", 249, 90), ("Large", 349, 90)],
    ),
    Entry("Iced Tea", "Black tea with peach.", Drink, 28, &[("Small", 249, 90), ("Large", 349, 90)]),
    Entry("Cola", "A can of 330 ml.", Drink, 0, &[(ONE, 199, 200)]),
    Entry("Sparkling Water", "A bottle of 500 ml.", Drink, 200, &[(ONE, 179, 200)]),
    Entry("Ginger Beer", "A bottle of 330 ml, without alcohol.", Drink, 34, &[(ONE, 289, 0)]),
    Entry("French Fries", "Cut and fried here.", Side, 44, &[("Small", 349, 80), ("Large", 499, 80)]),
    Entry("Onion Rings", "Eight rings in a beer batter.", Side, 36, &[(ONE, 449, 60)]),
    Entry("Garlic Bread", "Half a loaf with butter, garlic and parsley.", Side, 62, &[(ONE, 399, 60)]),
    Entry("Coleslaw", "Cabbage and carrots in a light dressing.", Side, 90, &[(ONE, 299, 60)]),
    Entry("Caesar Salad", "Romaine, parmesan and croutons.", Side, 100, &[(ONE, 749, 30)]),
    Entry("Blue Cheese Dip", "Made here, with celery.", Side, 220, &[(ONE, 99, 300)]),
    Entry("Chocolate Brownie", "Dark chocolate and walnuts.", Sweet, 18, &[(ONE, 329, 50)]),
    Entry("Cheesecake", "A slice, with a strawberry.", Sweet, 345, &[(ONE, 459, 24)]),
    Entry(
        "<script>alert(\"Cookie\")</script>",
        "A cookie with a sense of humour & <b>extra</b> chocolate.",
        Sweet,
        270,
        &[(ONE, 219, 70)],
    ),
];

impl Entry {
    /// The name of the picture.
    pub(super) fn picture(&self) -> String {
        let shape = match self.2 {
            Wings => "wings",
            Pizza => "pizza",
            Drink => "drink",
            Side => "side",
            Sweet => "sweet",
        };
        format!("{shape}-{}.svg", self.3)
    }

    pub(super) fn variants(&self) -> impl Iterator<Item = (&'static str, Money, i64)> {
        self.4.iter().map(|(title, price, stock)| (*title, Money::from_hundredths(*price), *stock))
    }
}

/// A drawing in the colour that its name says.
pub(super) fn picture(name: &str) -> Option<String> {
    let (shape, hue) = name.strip_suffix(".svg")?.split_once('-')?;
    let hue: u16 = hue.parse().ok().filter(|hue| *hue < 360)?;
    let shapes = match shape {
        "wings" => {
            "<g class='a'><path d='M60 150c-14-34 2-66 30-72s54 14 46 44-22 26-36 40-32 14-40-12z'/><path d='M118 170c-4-28 \
             14-56 44-54s42 30 24 54-22 22-38 30-28-8-30-30z'/></g><g class='b'><circle cx='92' cy='112' r='7'/><circle \
             cx='116' cy='96' r='5'/><circle cx='150' cy='150' r='7'/><circle cx='172' cy='136' r='5'/></g>"
        }
        "pizza" => {
            "<path class='b' d='M120 52 208 176q-88 44-176 0z'/><path class='a' d='M120 74 188 168q-68 30-136 0z'/><g \
             class='b'><circle cx='104' cy='136' r='12'/><circle cx='138' cy='150' r='12'/><circle cx='122' cy='108' r='9'/></g>"
        }
        "drink" => {
            "<path class='b' d='M132 34 160 26l3 10-22 7v22h-9z'/><path class='a' d='M74 64h92l-12 128q-34 14-68 0z'/><path \
             class='c' d='M80 96h80l-3 30H83z'/>"
        }
        "side" => {
            "<g class='b'><rect x='78' y='46' width='16' height='90' rx='5'/><rect x='102' y='34' width='16' height='90' \
             rx='5'/><rect x='126' y='40' width='16' height='90' rx='5'/><rect x='150' y='52' width='16' height='90' \
             rx='5'/></g><path class='a' d='M62 104q58 30 116 0l-14 90H76z'/>"
        }
        "sweet" => {
            "<circle class='a' cx='120' cy='124' r='74'/><g class='b'><circle cx='92' cy='98' r='11'/><circle cx='142' \
             cy='92' r='9'/><circle cx='156' cy='140' r='12'/><circle cx='104' cy='154' r='10'/><circle cx='120' cy='122' \
             r='7'/></g>"
        }
        _ => return None,
    };
    let style = format!(
        ".g{{fill:hsl({hue} 60% 93%)}}.a{{fill:hsl({hue} 68% 58%)}}.b{{fill:hsl({hue} 62% 38%)}}.c{{fill:hsl({hue} 80% 88%)}}"
    );
    Some(format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 240 240'><style>{style}</style><rect class='g' width='240' \
         height='240'/>{shapes}</svg>"
    ))
}

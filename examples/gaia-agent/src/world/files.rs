//! The files of the world, made by code: sheets, pictures, recordings and reports. Small, and the same each
//! time.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// A spreadsheet of one sheet.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The name.
    pub name: String,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// A cell.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A day, counted from the end of 1899 as spreadsheets do.
    Day(u32),
    /// A formula without a stored result.
    Formula(String),
    /// Nothing.
    Empty,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl Sheet {
    /// The bytes of the file.
    ///
    /// # Errors
    /// If it cannot be written, which does not happen in memory.
    pub fn to_xlsx(&self) -> std::io::Result<Vec<u8>> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default());
        let types = r#"<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>"#;
        let package = r#"<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#;
        let book = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="{}" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
            escaped(&self.name)
        );
        let book_parts = r#"<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>"#;
        // The second format is that of days.
        let styles = r#"<?xml version="1.0" encoding="UTF-8"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>"#;
        let sheet = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>"#,
            self.rows.iter().enumerate().map(|(at, row)| row_xml(at + 1, row)).collect::<String>()
        );
        for (name, content) in [
            ("[Content_Types].xml", types),
            ("_rels/.rels", package),
            ("xl/workbook.xml", &book),
            ("xl/_rels/workbook.xml.rels", book_parts),
            ("xl/styles.xml", styles),
            ("xl/worksheets/sheet1.xml", &sheet),
        ] {
            archive.start_file(name, options)?;
            archive.write_all(content.as_bytes())?;
        }
        Ok(archive.finish()?.into_inner())
    }
}

fn row_xml(number: usize, row: &[Value]) -> String {
    let cells = row.iter().enumerate().map(|(at, value)| {
        // No sheet here has more than 26 columns.
        let place = format!("{}{number}", char::from(b'A' + at as u8));
        match value {
            Value::Text(text) => {
                format!(r#"<c r="{place}" t="inlineStr"><is><t>{}</t></is></c>"#, escaped(text))
            }
            Value::Number(value) => format!(r#"<c r="{place}"><v>{value}</v></c>"#),
            Value::Day(day) => format!(r#"<c r="{place}" s="1"><v>{day}</v></c>"#),
            Value::Formula(formula) => format!(r#"<c r="{place}"><f>{}</f></c>"#, escaped(formula)),
            Value::Empty => String::new(),
        }
    });
    format!(r#"<row r="{number}">{}</row>"#, cells.collect::<String>())
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A report of some pages as a PDF with a text layer. Its letters are those of ASCII.
pub fn report(pages: &[&[&str]]) -> Vec<u8> {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned()];
    let kids: String = (0..pages.len()).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    objects.push(format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()));
    objects
        .push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned());
    for (at, lines) in pages.iter().enumerate() {
        let content = 5 + 2 * at;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents {content} 0 R >>"
        ));
        let text: String = lines.iter().map(|line| format!("({}) Tj T*\n", in_parentheses(line))).collect();
        let stream = format!("BT\n/F1 12 Tf\n16 TL\n72 770 Td\n{text}ET");
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let table = file.len();
    file += &format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    places.iter().for_each(|place| file += &format!("{place:010} 00000 n \n"));
    file += &format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
    file.into_bytes()
}

fn in_parentheses(text: &str) -> String {
    text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)")
}

/// A picture of a text in large letters, as a PNG. Its letters are capitals, digits and spaces; others are
/// gaps.
///
/// # Errors
/// If it cannot be encoded, which does not happen in memory.
pub fn picture(text: &str) -> Result<Vec<u8>, png::EncodingError> {
    let letters: Vec<_> = text.chars().map(super::media::glyph).collect();
    let scale = super::media::SCALE;
    let (width, height) = ((letters.len() * 6 + 1) * scale, 9 * scale);
    let mut pixels = vec![255_u8; width * height];
    for (at, glyph) in letters.iter().enumerate() {
        for (row, bits) in glyph.iter().enumerate() {
            for column in (0..5).filter(|column| bits & (0b10000 >> column) != 0) {
                for y in 0..scale {
                    let begin = ((row + 1) * scale + y) * width + (at * 6 + 1 + column) * scale;
                    pixels[begin..begin + scale].fill(0);
                }
            }
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(file)
}

/// A recording of a text in Morse code, as a WAV.
///
/// # Errors
/// If it cannot be encoded, which does not happen in memory.
pub fn recording(text: &str) -> Result<Vec<u8>, hound::Error> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: super::media::RATE,
        bits_per_sample: 8,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut file, spec)?;
    for (is_on, units) in morse(text) {
        for sample in 0..units * super::media::UNIT {
            // A square wave of a twentieth of the rate.
            let level = if sample / 10 % 2 == 0 { 90 } else { -90 };
            writer.write_sample(if is_on { level } else { 0_i8 })?;
        }
    }
    writer.finalize()?;
    Ok(file.into_inner())
}

/// A text in Morse code: tones and silences, with their lengths in units.
pub fn morse(text: &str) -> Vec<(bool, u32)> {
    let mut signals: Vec<(bool, u32)> = Vec::new();
    for word in text.split_whitespace() {
        for letter in word.chars() {
            for sign in super::media::code(letter).chars() {
                signals.push((true, if sign == '.' { 1 } else { 3 }));
                signals.push((false, 1));
            }
            // Between letters are three units, between words seven.
            if let Some((_, gap)) = signals.last_mut() {
                *gap = 3;
            }
        }
        if let Some((_, gap)) = signals.last_mut() {
            *gap = 7;
        }
    }
    signals
}

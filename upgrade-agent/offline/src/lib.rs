mod grammar;
mod matcher;
mod notation;
mod reading;
mod slots;
mod terms;
mod token;
mod values;

#[cfg(test)]
mod tests;

//! The tracks of a channel: the row of each horizontal line. No two lines lie on each other unless they have
//! an end in common.

use std::collections::{BTreeMap, BTreeSet};

use super::Point;
use super::layers::{Layers, Segment};

/// Sets the corners of the segments below a layer, with the first track in row `top`, in a drawing of that
/// width. Returns the number of tracks.
pub(super) fn route(
    layers: &Layers,
    below: impl Iterator<Item = usize>,
    columns: &[i32],
    (width, top): (i32, i32),
    corners: &mut [Vec<Point>],
) -> i32 {
    let lines: Vec<Line> = below
        .map(|segment| {
            let Segment { ends, ports, .. } = &layers.segments[segment];
            Line { segment, ends: [0, 1].map(|end| columns[ends[end]] + ports[end]) }
        })
        .collect();
    let mut channel = Channel::of(&lines, width);
    channel.assign();
    for net in &channel.nets {
        for Line { segment, ends: [above, below] } in net.lines.iter().filter(|line| line.is_bent()) {
            let (from, to) = ((*above, top + net.first), (*below, top + net.track));
            corners[*segment] = match net.detour {
                Some(column) => vec![from, (column, from.1), (column, to.1), to],
                None => vec![(*above, to.1), to],
            };
        }
    }
    channel.skyline.into_iter().max().unwrap_or(0)
}

/// A segment, and the columns of its ends above and below.
#[derive(Clone)]
struct Line {
    segment: usize,
    ends: [i32; 2],
}

impl Line {
    fn is_bent(&self) -> bool {
        self.ends[0] != self.ends[1]
    }
}

/// Lines with a common end, which share a track.
#[derive(Default)]
struct Net {
    lines: Vec<Line>,
    track: i32,
    /// A net that is on two tracks goes from the first to the other in this column.
    detour: Option<i32>,
    first: i32,
}

impl Net {
    fn ends(&self, side: usize) -> impl Iterator<Item = i32> {
        self.lines.iter().map(move |line| line.ends[side])
    }

    /// Side by side, lines to the right do not cross if the rightmost is on top, and lines to the left if the
    /// leftmost is.
    fn place(&self) -> (bool, i32) {
        let to_right = self.ends(0).sum::<i32>() <= self.ends(1).sum::<i32>();
        let columns = self.ends(0).chain(self.ends(1));
        if to_right { (false, -columns.max().unwrap_or(0)) } else { (true, columns.min().unwrap_or(0)) }
    }
}

struct Channel {
    nets: Vec<Net>,
    /// The nets that must be below each, and the number of those that must be above it.
    under: Vec<Vec<usize>>,
    waits: Vec<usize>,
    /// The columns in which lines begin or end.
    taken: BTreeSet<i32>,
    /// The next free track in each column.
    skyline: Vec<i32>,
}

impl Channel {
    fn of(lines: &[Line], width: i32) -> Self {
        let mut count = [BTreeMap::new(), BTreeMap::new()];
        for line in lines {
            (0..2).for_each(|side| *count[side].entry(line.ends[side]).or_insert(0) += 1);
        }
        // A line is in the net of its upper end, or of its lower end if the upper one has no other line: a
        // net never joins two ends above that do not lead to the same ends below.
        let mut nets: BTreeMap<(usize, i32), Net> = BTreeMap::new();
        for line in lines {
            let [above, below] = line.ends;
            let is_inlet = count[0][&above] == 1 && count[1][&below] > 1;
            let key = if is_inlet { (1, below) } else { (0, above) };
            nets.entry(key).or_default().lines.push(line.clone());
        }
        let mut nets: Vec<Net> =
            nets.into_values().filter(|net| net.lines.iter().any(Line::is_bent)).collect();
        nets.sort_by_key(Net::place);

        // What begins in a column is above what ends in it.
        let mut begins: BTreeMap<i32, BTreeSet<usize>> = BTreeMap::new();
        for (at, net) in nets.iter().enumerate() {
            net.ends(0).for_each(|column| _ = begins.entry(column).or_default().insert(at));
        }
        let (mut under, mut waits) = (vec![Vec::new(); nets.len()], vec![0; nets.len()]);
        for (at, net) in nets.iter().enumerate() {
            let ends: BTreeSet<i32> = net.ends(1).collect();
            for over in
                ends.iter().filter_map(|column| begins.get(column)).flatten().filter(|over| **over != at)
            {
                under[*over].push(at);
                waits[at] += 1;
            }
        }
        let taken = lines.iter().flat_map(|line| line.ends).collect();
        Channel { nets, under, waits, taken, skyline: vec![0; width as usize] }
    }

    fn assign(&mut self) {
        let mut open: BTreeSet<usize> = (0..self.nets.len()).collect();
        let mut ready: BTreeSet<usize> = open.iter().copied().filter(|net| self.waits[*net] == 0).collect();
        while let Some(net) = ready.pop_first().or_else(|| self.in_circle(&open)) {
            match self.free_column(net).filter(|_| self.waits[net] > 0) {
                // It leaves its upper ends above the others, and reaches the lower ones below them.
                Some(column) => {
                    self.taken.insert(column);
                    self.nets[net].detour = Some(column);
                    self.nets[net].first = self.build(net, &[0]);
                }
                None => {
                    open.remove(&net);
                    let sides: &[usize] = if self.nets[net].detour.is_some() { &[1] } else { &[0, 1] };
                    self.nets[net].track = self.build(net, sides);
                }
            }
            for under in std::mem::take(&mut self.under[net]) {
                self.waits[under] -= 1;
                if self.waits[under] == 0 && open.contains(&under) {
                    ready.insert(under);
                }
            }
        }
    }

    /// The first net of those that wait for each other. One with a detour no longer holds up others.
    fn in_circle(&self, open: &BTreeSet<usize>) -> Option<usize> {
        open.iter().copied().find(|net| self.nets[*net].detour.is_none())
    }

    /// The nearest column in which no line begins or ends.
    fn free_column(&self, net: usize) -> Option<i32> {
        let near = self.nets[net].lines.first()?.ends[0];
        let width = self.skyline.len() as i32;
        let columns = (1..width).flat_map(|away| [near + away, near - away]);
        columns.filter(|column| (0..width).contains(column)).find(|column| !self.taken.contains(column))
    }

    /// Puts a line over the ends on these sides below all that is there already.
    fn build(&mut self, net: usize, sides: &[usize]) -> i32 {
        let net = &self.nets[net];
        let columns = || sides.iter().flat_map(|side| net.ends(*side)).chain(net.detour);
        let (first, last) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
        let covered = &mut self.skyline[first as usize..=last as usize];
        let track = covered.iter().copied().max().unwrap_or(0);
        covered.fill(track + 1);
        track
    }
}

//! The samples of a virtual dataset: boxes of other arrays.
//!
//! Its bricks are boxes each of which lies in one brick of one source: that one is read in its place. They are as large
//! as the places of all mappings allow.

use std::collections::HashSet;
use std::sync::Arc;

use super::mapping::{Selection, Steps};
use crate::format::{Array, FormatError};
use crate::source::{Blocking, Source};
use crate::volume::{Brick, BrickGrid, BrickSet, Coded, Dims, Layout, MAX_AXES, Region, slab};

/// The most sources that are named in a description.
const MAX_NAMED: usize = 100;

/// Elements of a source, and where they stand.
pub(super) struct Part {
    source: Arc<dyn Array>,
    /// Whether its samples are stored in one piece, so that bricks may have any edges.
    is_plain: bool,
    /// Where the source is, for messages.
    name: String,
    from: Vec<Steps>,
    to: Vec<Steps>,
    /// The axes along which there are several, in the virtual dataset and in the source.
    axes: Vec<(usize, usize)>,
}

impl Part {
    /// The elements `from` of a source, each of which has `inner` axes, in the place of `to`.
    pub(super) fn new(
        (source, is_plain, inner): (Arc<dyn Array>, bool, usize),
        name: String,
        from: Selection,
        to: Vec<Steps>,
    ) -> Result<Self, FormatError> {
        let shape = source.info().shape();
        let own = &shape[..shape.len().saturating_sub(inner)];
        let from = match from {
            Selection::Steps(from) => from,
            Selection::All | Selection::None => own.iter().map(|extent| Steps::run(0, *extent)).collect(),
        };
        let is_in = |(steps, extent): (&Steps, &u64)| !steps.is_unlimited() && steps.end() <= *extent;
        if from.len() != own.len() || !from.iter().zip(own).all(is_in) {
            return Err(format!("a mapping selects elements that {name} does not have: it has {own:?}").into());
        }
        let several =
            |steps: &[Steps]| -> Vec<usize> { (0..steps.len()).filter(|axis| steps[*axis].length != 1).collect() };
        let axes: Vec<(usize, usize)> = several(&to).into_iter().zip(several(&from)).collect();
        let is_same = several(&to).len() == several(&from).len()
            && axes.iter().all(|(to_axis, axis)| to[*to_axis].length == from[*axis].length);
        if !is_same {
            let count = |steps: &[Steps]| steps.iter().map(|steps| u128::from(steps.length)).product::<u128>();
            return Err(if count(&to) == count(&from) {
                FormatError::Unsupported(format!("a mapping gives elements of {name} another shape"))
            } else {
                format!("a mapping of {name} has other numbers of elements on both sides").into()
            });
        }
        Ok(Self { source, is_plain, name, from, to, axes })
    }

    /// Returns the numbers that have to be multiples of the extent of bricks along an axis of extent `extent`.
    fn edges(&self, axis: usize, extent: u64) -> Vec<u64> {
        let to = &self.to[axis];
        let mut edges = vec![to.start];
        if to.end() != extent {
            edges.push(to.length);
        }
        if to.has_blocks() {
            edges.extend([to.stride, to.block]);
        }
        if let Some((_, axis)) = self.axes.iter().find(|(to_axis, _)| *to_axis == axis) {
            let from = &self.from[*axis];
            if from.has_blocks() {
                edges.extend([from.stride, from.block]);
            }
            if !self.is_plain {
                edges.extend([from.start, self.source.info().brick_shape[*axis]]);
            }
        }
        edges
    }

    /// Returns the first element of a box in the source, by the place of the box; `None` if its first element is none of
    /// these.
    fn start_of(&self, region: &Region) -> Option<Dims> {
        let mut elements = [0; MAX_AXES];
        for (axis, steps) in self.to.iter().enumerate() {
            elements[axis] = steps.element(region.start[axis])?;
        }
        let axes = self.source.info().shape().len();
        let mut start = Dims::from_fn(axes, |axis| self.from.get(axis).map_or(0, |steps| steps.start));
        for (to_axis, axis) in &self.axes {
            start[*axis] = self.from[*axis].at(elements[*to_axis]);
        }
        Some(start)
    }
}

pub(super) struct VirtualDataset {
    /// The source of all bricks.
    pub source: Arc<dyn Source>,
    parts: Vec<Part>,
    /// The axis along which most parts lie one after the other, and where each begins on it, in this order: the
    /// position, the end of all up to this one, and its number.
    order: (usize, Vec<(u64, u64, usize)>),
    /// The axes of each element: the last ones of all arrays.
    inner: Vec<u64>,
}

/// Returns the order of parts in which they are looked for.
fn in_order(parts: &[Part]) -> (usize, Vec<(u64, u64, usize)>) {
    let starts = |axis: usize| parts.iter().map(|part| part.to[axis].start).collect::<HashSet<_>>().len();
    let axis = (0..parts.first().map_or(0, |part| part.to.len())).rev().max_by_key(|axis| starts(*axis)).unwrap_or(0);
    let places = parts.iter().enumerate().map(|(number, part)| (part.to[axis].start, part.to[axis].end(), number));
    let mut order: Vec<_> = places.collect();
    order.sort_unstable();
    let mut reach = 0;
    order.iter_mut().for_each(|(_, end, _)| {
        reach = reach.max(*end);
        *end = reach;
    });
    (axis, order)
}

impl VirtualDataset {
    /// Puts parts together whose objects are those of `source`. Each of their elements has the shape `inner`.
    pub(super) fn new(source: Arc<dyn Source>, parts: Vec<Part>, inner: Vec<u64>) -> Self {
        Self { source, order: in_order(&parts), parts, inner }
    }

    /// Returns the part that has the first element of a box: its number, and where the element is in its source. Of
    /// several parts the last one counts.
    fn part_at(&self, region: &Region) -> Option<(usize, Dims)> {
        let (axis, order) = &self.order;
        let at = *region.start.get(*axis)?;
        let begun = &order[..order.partition_point(|(start, ..)| *start <= at)];
        let near = begun.iter().rev().take_while(|(_, reach, _)| *reach > at);
        near.filter_map(|(.., number)| Some((*number, self.parts[*number].start_of(region)?)))
            .max_by_key(|found| found.0)
    }

    /// Returns the shape of bricks each of which lies in one brick of one source, or in none.
    pub(super) fn brick_shape(&self, shape: &Dims) -> Dims {
        let (own, piece) = (shape.len() - self.inner.len(), slab(shape));
        let is_plain = self.parts.iter().all(|part| part.is_plain);
        Dims::from_fn(shape.len(), |axis| {
            let edges = self.parts.iter().filter(|_| axis < own).flat_map(|part| part.edges(axis, shape[axis]));
            let extent = match edges.fold(0, gcd) {
                0 => shape[axis].max(1),
                extent => extent,
            };
            if !is_plain {
                return extent;
            }
            let most = piece[axis].min(extent);
            (1..=most).rev().find(|n| extent.is_multiple_of(*n) || extent >= shape[axis]).unwrap_or(1)
        })
    }

    /// How often a chunk of the sources is decoded in one pass, if it is cut by the mappings: bricks of the shape `brick`
    /// lie in one each.
    pub(super) fn decodes(&self, brick: &Dims) -> u64 {
        let own = brick.product().unwrap_or(u64::MAX).max(1);
        let coded = self.parts.iter().filter(|part| !part.is_plain);
        coded.filter_map(|part| part.source.info().brick_shape.product()).max().unwrap_or(0).div_ceil(own)
    }

    /// The places of the first sources, for people.
    pub(super) fn places(&self) -> Vec<&str> {
        self.parts.iter().take(MAX_NAMED).map(|part| &*part.name).collect()
    }

    /// The codec of the sources.
    pub(super) fn codec(&self) -> &'static str {
        let mut codecs = self.parts.iter().map(|part| part.source.info().codec.unwrap_or("raw"));
        let first = codecs.next().unwrap_or("raw");
        if codecs.all(|codec| codec == first) { first } else { "mixed" }
    }

    pub(super) fn is_coded(&self) -> bool {
        self.parts.iter().any(|part| part.source.decoded_shape(&Dims::filled(part.from.len(), 0)).is_some())
    }

    /// Returns the brick that owns `region`; `None` if no source has it.
    pub(super) fn brick(&self, region: &Region, blocking: Blocking) -> Result<Option<Brick>, FormatError> {
        let Some((number, start)) = self.part_at(region) else { return Ok(None) };
        let part = &self.parts[number];
        let grid = &part.source.info().grid;
        let at = Dims::from_fn(start.len(), |axis| grid.brick_of(axis, start[axis]));
        let mut brick = part.source.brick(&at, blocking).map_err(|error| error.of(&part.name))?;
        let layout = match &mut brick {
            Brick::Constant(_) => return Ok(Some(brick)),
            Brick::Plain(plain) => &mut plain.layout,
            Brick::Coded(coded) => {
                coded.codec |= (number as u64) << 32;
                &mut coded.layout
            }
        };
        let (own, inner) = (part.from.len(), self.inner.len());
        let pairs = part.axes.iter().copied().chain((0..inner).map(|axis| (part.to.len() + axis, own + axis)));
        let mut strides = Dims::filled(region.axes(), 0);
        pairs.for_each(|(to_axis, axis)| strides[to_axis] = layout.strides[axis]);
        *layout = Layout { held: *region, first: layout.offset_of(&start), strides };
        Ok(Some(brick))
    }

    /// Visits boxes with all bricks that parts have, each brick once, until `visit` returns `false`: a box around parts
    /// that lie side by side.
    pub(super) fn visit(&self, grid: &BrickGrid, visit: &mut dyn FnMut(BrickSet) -> bool) {
        let count = grid.count();
        for group in self.order.1.chunk_by(|(_, reach, _), (start, ..)| start < reach) {
            let steps = |axis: usize| group.iter().filter_map(move |(.., number)| self.parts[*number].to.get(axis));
            let first = |axis: usize| steps(axis).map(|steps| grid.brick_of(axis, steps.start)).min().unwrap_or(0);
            let last = |axis: usize| steps(axis).map(|steps| grid.brick_of(axis, steps.end() - 1)).max();
            let start = Dims::from_fn(count.len(), first);
            let shape = Dims::from_fn(count.len(), |axis| last(axis).map_or(count[axis], |n| n + 1 - start[axis]));
            if !visit(BrickSet::Box(Region { start, shape })) {
                return;
            }
        }
    }

    pub(super) fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let part = usize::try_from(coded.codec >> 32).ok().and_then(|number| self.parts.get(number));
        let part = part.ok_or_else(|| FormatError::Internal("a brick of no source".into()))?;
        let own = Coded { codec: coded.codec & u64::from(u32::MAX), ..coded.clone() };
        part.source.decode(&own, stored, out).map_err(|error| error.of(&part.name))
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

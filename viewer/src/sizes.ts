/** Sizes of the picture in pixels at 100%. Choices, made by looking at pictures. */

/** The distance in x that the scene calls 1: about the widest item. Neighbours are at least 1.2 apart. */
export const UNIT = 178;
/** Half of the widths of items by kind: node, room, input, output, stub. */
export const HALF_WIDTH = [92, 92, 84, 84, 64];
export const HEIGHT = [56, 60, 38, 38, 22];
/** Least free space between two items of a row, and around a bend. */
export const GAP = 14;
export const BEND = 5;
/** Free space between two rows: room for edges and their types. Rows whose edges run far to the side get more. */
export const ROW_GAP = 46;
export const ROW_GAP_MORE = 110;
export const ROW_GAP_SLOPE = 0.05;
/** An opened room has a bar with its title, and free space around what is inside. */
export const TITLE = 30;
export const PADDING = 22;

/** Suffix of ANNOTATIONS.emptiedSince: the node is empty and counts as gone. */
export const EMPTY = ' empty';

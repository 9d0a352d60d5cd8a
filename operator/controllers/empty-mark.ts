/** At the end of ANNOTATIONS.emptiedSince: nothing is left on the node, and it is counted as gone. */
export const EMPTY = ' empty';

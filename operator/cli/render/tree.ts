import { type Cell, type Row, renderWrapped, type TableOptions } from './table.ts';

export interface TreeNode {
  /** Cells of the row; branches are drawn before the first. */
  cells: readonly (Cell | string)[];
  children?: readonly TreeNode[];
}

/** A tree as aligned columns, with branches in the first column; the last column wraps at the terminal's width. */
export function renderTree(header: readonly string[], root: TreeNode, options: TableOptions = {}): string[] {
  const rows: Row[] = [];
  collect(root, '', '', header.length, rows);
  return renderWrapped(header, rows, options);
}

function collect(node: TreeNode, branch: string, indent: string, columns: number, rows: Row[]): void {
  const [first, ...rest] = node.cells;
  const label: Cell = typeof first === 'object' ? first : { text: first ?? '' };
  const children = node.children ?? [];
  const cells = [{ ...label, text: branch + label.text }, ...rest];
  while (cells.length < columns) cells.push('');
  rows.push({ cells, below: children.length > 0 ? `${indent}│` : indent.trimEnd() });
  children.forEach((child, index) => {
    const last = index === children.length - 1;
    collect(child, `${indent}${last ? '└─' : '├─'}`, `${indent}${last ? '  ' : '│ '}`, columns, rows);
  });
}

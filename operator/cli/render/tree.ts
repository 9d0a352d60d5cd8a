import { type Cell, type Row, renderWrapped, type TableOptions } from './table.ts';

export interface TreeNode {
  /** The columns of this row; the first is drawn after the branches. */
  cells: readonly (Cell | string)[];
  children?: readonly TreeNode[];
}

/** A tree whose rows are aligned columns, branches drawn in the first; the last column is wrapped to the terminal. */
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

import { renderTable, type TableOptions } from './table.ts';
import type { Cell } from './table.ts';

export interface TreeNode {
  /** The columns of this row; the first is drawn after the branches. */
  cells: readonly (Cell | string)[];
  children?: readonly TreeNode[];
}

/** A tree whose rows are aligned columns, branches drawn in the first. */
export function renderTree(header: readonly string[], root: TreeNode, options: TableOptions = {}): string[] {
  const rows: (readonly (Cell | string)[])[] = [];
  collect(root, '', '', rows);
  return renderTable(header, rows, options);
}

function collect(node: TreeNode, branch: string, indent: string, rows: (readonly (Cell | string)[])[]): void {
  const [first, ...rest] = node.cells;
  const label: Cell = typeof first === 'object' ? first : { text: first ?? '' };
  rows.push([{ ...label, text: branch + label.text }, ...rest]);
  const children = node.children ?? [];
  children.forEach((child, index) => {
    const last = index === children.length - 1;
    collect(child, `${indent}${last ? '└─' : '├─'}`, `${indent}${last ? '  ' : '│ '}`, rows);
  });
}

import { expect, test } from 'vitest';
import {
  isRead,
  isSource,
  linkedLibraries,
  productionPackages,
} from '../../../operator/garden/images/operator-image/contents.ts';

test('the operator image excludes development and optional packages', () => {
  const packages = {
    '': {},
    'node_modules/vitest': { dev: true },
    'node_modules/node': { dev: true },
    'node_modules/pino': {},
    'node_modules/@kubernetes/client-node': {},
    'node_modules/pino/node_modules/split2': {},
    'node_modules/typescript': { devOptional: true },
    'node_modules/@typescript/linux': { optional: true },
    'node_modules/other': { peer: true },
  };
  expect(productionPackages({ packages })).toEqual([
    'node_modules/@kubernetes/client-node',
    'node_modules/pino',
    'node_modules/pino/node_modules/split2',
  ]);
});

test('the operator image contains only what Node reads of packages', () => {
  for (const name of ['index.js', 'esm/a.mjs', 'a.cjs', 'package.json', 'proto/x.proto', 'lib/tests.js', 'LICENSE'])
    expect(isRead(name), name).toBe(true);
  for (const name of ['index.d.ts', 'a.d.mts', 'src/a.ts', 'a.js.map', 'README.md', 'test/a.js', '.package-lock.json'])
    expect(isRead(name), name).toBe(false);
});

test("the operator image contains the checkout without editors' files", () => {
  for (const name of ['operator/main.ts', 'providers/local/machine.sh', 'profiles/aws.yaml'])
    expect(isSource(name), name).toBe(true);
  for (const name of ['operator/.main.ts.swp', 'profiles/.DS_Store']) expect(isSource(name), name).toBe(false);
});

test('the operator image contains the linked libraries and their loader', () => {
  const text = [
    '\tlinux-vdso.so.1 (0x00007ffd1)',
    '\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f1)',
    '\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2)',
    '\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)',
  ].join('\n');
  expect(linkedLibraries(text)).toEqual([
    '/lib/x86_64-linux-gnu/libc.so.6',
    '/lib/x86_64-linux-gnu/libdl.so.2',
    '/lib64/ld-linux-x86-64.so.2',
  ]);
  expect(() => linkedLibraries('\tlibstdc++.so.6 => not found')).toThrow('lacks the library libstdc++.so.6');
});

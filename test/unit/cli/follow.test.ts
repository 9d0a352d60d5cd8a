import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const PROGRAM = `
import { follow } from './operator/cli/follow.ts';
import { PODS } from './operator/kube/resources.ts';
const fail = async () => { throw new Error('later'); };
const over = new AbortController();
let troubles = 0;
await follow({ listPages: fail, watch: fail }, PODS, { name: 'a' }, () => ++troubles === 2 && over.abort(), over.signal);
console.log('followed');
`;

it('whoever follows an object lives on while its API server answers nothing, and nothing else keeps the process alive', () => {
  const options = ['--input-type=module-typescript', '--eval', PROGRAM];
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { encoding: 'utf8', timeout: 50_000 });
  expect({ stdout, stderr, status }).toEqual({ stdout: 'followed\n', stderr: '', status: 0 });
});

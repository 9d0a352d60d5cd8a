import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { NEEDING_MORE, OLDER_KUBERNETES, toolSteps, toolsOf } from '../../kit/needed-tools.ts';
import { stagesOf, tierOf } from '../../kit/sets.ts';

const toolsOfRun = (run: 'short' | 'ci' | 'all') => toolSteps(stagesOf(run, 0)).flatMap(({ tools }) => tools);

it('all files and folders listed with their tools exist', () => {
  expect(NEEDING_MORE.filter((path) => !existsSync(path))).toEqual([]);
});

it('a run builds each tool once, and only tools that its files need', () => {
  const tools = toolsOfRun('short');
  expect(new Set(tools).size).toBe(tools.length);
  expect(tools).toEqual(expect.arrayContaining(['kube-apiserver', 'kubelet', 'kwok']));
  for (const heavy of ['pulumi', 'argo-cd', 'helm', 'kubeadm', 'etcdctl', 'proxy-server'] as const) {
    expect(tools).not.toContain(heavy);
    expect(toolsOfRun('ci')).toContain(heavy);
  }
});

it('only a full run builds an older Kubernetes', () => {
  expect(OLDER_KUBERNETES.filter((name) => toolsOfRun('ci').includes(name))).toEqual([]);
  expect(OLDER_KUBERNETES.filter((name) => !toolsOfRun('all').includes(name))).toEqual([]);
});

it('each file starts after the step in which its tools are built', () => {
  const stages = stagesOf('ci', 0);
  const steps = toolSteps(stages);
  const made = new Set<string>();
  const begun: string[] = [];
  for (const { tools, files } of steps) {
    for (const tool of tools) made.add(tool);
    for (const file of files) expect(toolsOf(file).filter((tool) => !made.has(tool))).toEqual([]);
    begun.push(...files);
  }
  expect(begun.toSorted()).toEqual(
    stages
      .flat()
      .filter((file) => tierOf(file) !== 'unit')
      .toSorted(),
  );
});

it('tools of the short run are built first: for its integration tests, then its gardens', () => {
  const [first, second] = toolSteps(stagesOf('ci', 0));
  expect(first!.files.every((file) => tierOf(file) === 'integration')).toBe(true);
  expect(first!.tools).not.toContain('pulumi');
  expect(second!.files).toContain('test/e2e/scaling.test.ts');
  // Of the rest, what needs no more: it does not wait until Pulumi is built for others.
  expect(second!.files).toContain('test/e2e/idle.test.ts');
  expect(first!.files).toContain('test/integration/conformance/dns-clouds.test.ts');
});

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT } from './project.ts';
import { EngineFailure } from './worker-engine.ts';
import type { StackPlace } from './worker-protocol.ts';

/** Deletes locks of a stack that was never created. Only for directories; elsewhere the error says what to delete. */
export function removeLocks({ environment, stackName }: Pick<StackPlace, 'environment' | 'stackName'>): void {
  const url = environment.PULUMI_BACKEND_URL ?? '';
  // pkg/backend/diy/lock.go: stackLockDir.
  const folder = `.pulumi/locks/organization/${PROJECT}/${stackName}`;
  if (!url.startsWith('file://'))
    throw new EngineFailure(
      'engine',
      `it was locked by somebody who is gone before it was made: delete what is below ${folder} in ${url.split('?')[0]}`,
    );
  rmSync(join(fileURLToPath(url.split('?')[0]!), folder), { recursive: true, force: true });
}

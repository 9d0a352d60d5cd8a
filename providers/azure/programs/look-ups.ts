/**
 * What a look-up finds; undefined when Azure does not have it. Any other refusal is passed on: taken for "not there", it would
 * make something as if it were new.
 */
export async function findResource<T>(lookUp: Promise<T>): Promise<T | undefined> {
  try {
    return await lookUp;
  } catch (error) {
    if (/\b404\b|NotFound/.test(String(error))) return undefined;
    throw error;
  }
}

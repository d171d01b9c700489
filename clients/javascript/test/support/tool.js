/** A development tool; where it is not installed the test is skipped, unless everything is required. */
export async function tool(t, name) {
  try {
    return await import(name);
  } catch (problem) {
    if (process.env.SFUMATO_REQUIRE_ALL) throw problem;
    t.skip(`${name} is not installed: npm install`);
    return null;
  }
}

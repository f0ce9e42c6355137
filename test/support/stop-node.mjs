export default async function stopNode() {}

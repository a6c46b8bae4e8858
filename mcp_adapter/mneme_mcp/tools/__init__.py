"""The tools, one file for each group of calls; `mneme_mcp.toolsets` lists them."""

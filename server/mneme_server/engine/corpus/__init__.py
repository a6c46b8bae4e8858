"""The corpus: everything that can be recalled, whatever service stored it.

Each capability turns what it stores into documents. The corpus embeds and indexes them, and recall
searches them; neither needs to know what an event or a lesson is.
"""

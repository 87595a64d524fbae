"""Telling the desktop what needs the person: gathered, in plain words, by a child that lives for one
sentence.
"""

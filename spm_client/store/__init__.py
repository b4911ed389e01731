"""The store on disk: blobs, trees and generations. Decides nothing about what belongs there."""
